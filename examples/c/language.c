/* Answers a conversation piece by piece, cancels another answer, and makes vectors of texts:
   language.c [CHECKPOINT] [ENCODER] */

#include <string.h>

#include "check.h"

static int32_t print_piece(void *context, int32_t kind, const char *text, size_t length) {
    *(size_t *)context += 1;
    if (kind == GALATEA_PIECE_CONTENT) {
        fwrite(text, 1, length, stdout);
    }
    return 0;
}

static int32_t cancel_at_once(void *context, int32_t kind, const char *text, size_t length) {
    (void)context, (void)kind, (void)text, (void)length;
    return 1;
}

static void chat(galatea_engine *engine, const char *path) {
    const galatea_chat_message messages[2] = {{"system", "You are brief."}, {"user", "What is Galatea?"}};
    galatea_generation_options options;
    galatea_token_usage usage;
    galatea_llm *llm = NULL;
    galatea_text *answer = NULL, *piece = NULL, *text = NULL;
    galatea_stream *stream = NULL;
    galatea_status status;
    size_t pieces = 0, count = 0, length = 0;
    const char *data = NULL;
    uint32_t tokens[16];

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.greedy = 1;
    options.max_tokens = 24;
    memset(&usage, 0, sizeof usage);
    usage.size = sizeof usage;

    CHECK(galatea_llm_load(engine, path, NULL, &llm));
    CHECK(galatea_llm_chat(llm, messages, 2, &options, print_piece, &pieces, &answer, &usage));
    printf("\n%zu tokens in %zu pieces\n", usage.completion_tokens, pieces);
    EXPECT(usage.completion_tokens > 0 && pieces > 0);
    CHECK(galatea_text_data(answer, &data, &length));
    EXPECT(length > 0 && strlen(data) == length);
    CHECK(galatea_text_free(answer));

    status = galatea_llm_generate(llm, "Once upon a time", &options, cancel_at_once, NULL, NULL, NULL);
    EXPECT(status == GALATEA_STATUS_CANCELLED);

    CHECK(galatea_llm_stream_chat(llm, messages, 2, NULL, &stream));
    CHECK(galatea_stream_cancel(stream));
    while ((status = galatea_stream_next(stream, NULL, &piece)) == GALATEA_STATUS_OK) {
        CHECK(galatea_text_free(piece));
    }
    EXPECT(status == GALATEA_STATUS_END);
    CHECK(galatea_stream_free(stream));

    CHECK(galatea_llm_tokenize(llm, "Hello!", tokens, 16, &count));
    CHECK(galatea_llm_detokenize(llm, tokens, count, &text));
    CHECK(galatea_text_data(text, &data, NULL));
    EXPECT(strstr(data, "Hello") != NULL);
    CHECK(galatea_text_free(text));
    CHECK(galatea_llm_describe(llm, &text));
    CHECK(galatea_text_data(text, &data, NULL));
    printf("%s\n", data);
    CHECK(galatea_text_free(text));
    CHECK(galatea_llm_free(llm));
}

static void embed(galatea_engine *engine, const char *path) {
    const char *const texts[2] = {"A cat sleeps.", "A kitten naps."};
    galatea_encoder *encoder = NULL;
    size_t dimensions = 0;
    float *vectors, scores[2], product = 0.0f;

    CHECK(galatea_encoder_load(engine, path, NULL, &encoder));
    CHECK(galatea_encoder_sizes(encoder, &dimensions, NULL));
    EXPECT(dimensions > 0);
    vectors = malloc(2 * dimensions * sizeof *vectors);
    EXPECT(vectors != NULL);
    EXPECT(galatea_encoder_embed(encoder, texts, 2, vectors, dimensions) == GALATEA_STATUS_TOO_SMALL);
    CHECK(galatea_encoder_embed(encoder, texts, 2, vectors, 2 * dimensions));
    for (size_t at = 0; at < dimensions; ++at) {
        product += vectors[at] * vectors[dimensions + at];
    }
    printf("the texts are alike by %.3f\n", (double)product);
    CHECK(galatea_encoder_rank(encoder, "Who sleeps?", texts, 2, scores));
    free(vectors);
    CHECK(galatea_encoder_free(encoder));
}

int main(int argc, char **argv) {
    galatea_engine *engine = NULL;
    CHECK(galatea_engine_create(NULL, &engine));
    chat(engine, argc > 1 ? argv[1] : "examples/models/chat");
    embed(engine, argc > 2 ? argv[2] : "examples/encoder");
    CHECK(galatea_engine_free(engine));
    return 0;
}
