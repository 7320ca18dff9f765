/* What the library says to calls that are wrong: null, freed handles, wrong sizes, many threads at once. */

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

#define THREADS 4

struct shared {
    galatea_model *model;
    galatea_tensor *input;
};

static void *run(void *argument) {
    const struct shared *shared = argument;
    const galatea_named_tensor named[2] = {{"INPUT0", shared->input}, {"INPUT1", shared->input}};
    for (int at = 0; at < 200; ++at) {
        galatea_tensor *outputs[2] = {NULL, NULL};
        size_t count = 0;
        const galatea_status status = galatea_model_run(shared->model, named, 2, outputs, 2, &count);
        if (status == GALATEA_STATUS_INVALID_HANDLE) {
            /* Another thread has freed the model: that is an error, and nothing else. */
            return NULL;
        }
        CHECK(status);
        CHECK(galatea_tensor_free(outputs[0]));
        CHECK(galatea_tensor_free(outputs[1]));
    }
    return NULL;
}

int main(void) {
    const int64_t lengths[2] = {1, 16}, negative[2] = {-1, 16}, huge[2] = {INT64_MAX, INT64_MAX};
    int32_t ones[16] = {0};
    char local = 0;
    size_t count = 0;
    pthread_t threads[THREADS];
    struct shared shared = {NULL, NULL};
    galatea_engine *engine = NULL;
    galatea_tensor *tensor = NULL, *outputs[2] = {NULL, NULL};
    galatea_tensor_info info;

    /* Null and memory that is no handle. */
    EXPECT(galatea_engine_create(NULL, NULL) == GALATEA_STATUS_NULL_ARGUMENT);
    EXPECT(galatea_engine_free(NULL) == GALATEA_STATUS_NULL_ARGUMENT);
    EXPECT(galatea_model_free((galatea_model *)(void *)&local) == GALATEA_STATUS_INVALID_HANDLE);
    EXPECT(galatea_status_name(12345) == NULL);

    CHECK(galatea_engine_create(NULL, &engine));
    EXPECT(galatea_model_load(engine, "no such file.onnx", NULL, &shared.model) == GALATEA_STATUS_FILE);
    EXPECT(strstr(galatea_last_error(), "no such file.onnx") != NULL);
    EXPECT(galatea_model_load(engine, "\xff", NULL, &shared.model) == GALATEA_STATUS_INVALID_ARGUMENT);
    CHECK(galatea_model_load(engine, "examples/models/simple", NULL, &shared.model));

    /* Wrong sizes, types and shapes. */
    EXPECT(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, 60, &tensor) == GALATEA_STATUS_INVALID_ARGUMENT);
    EXPECT(galatea_tensor_create(99, lengths, 2, ones, 64, &tensor) == GALATEA_STATUS_INVALID_ARGUMENT);
    EXPECT(galatea_tensor_create(GALATEA_TYPE_INT32, negative, 2, ones, 64, &tensor) ==
           GALATEA_STATUS_INVALID_ARGUMENT);
    EXPECT(galatea_tensor_create(GALATEA_TYPE_INT32, huge, 2, ones, 64, &tensor) == GALATEA_STATUS_INVALID_ARGUMENT);
    EXPECT(galatea_tensor_wrap(GALATEA_TYPE_INT32, lengths, 2, NULL, 64, NULL, NULL, &tensor) ==
           GALATEA_STATUS_NULL_ARGUMENT);
    CHECK(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, sizeof ones, &shared.input));
    EXPECT(galatea_tensor_copy(shared.input, ones, 8) == GALATEA_STATUS_TOO_SMALL);
    memset(&info, 0, sizeof info);
    EXPECT(galatea_tensor_describe(shared.input, &info) == GALATEA_STATUS_INVALID_ARGUMENT);
    {
        const galatea_named_tensor one[1] = {{"INPUT0", shared.input}};
        const galatea_named_tensor unknown[2] = {{"INPUT0", shared.input}, {"INPUT9", shared.input}};
        EXPECT(galatea_model_run(shared.model, one, 1, outputs, 2, &count) == GALATEA_STATUS_RUN);
        EXPECT(galatea_model_run(shared.model, unknown, 2, outputs, 2, &count) == GALATEA_STATUS_RUN);
        EXPECT(galatea_model_run(shared.model, one, 1, outputs, 1, &count) == GALATEA_STATUS_TOO_SMALL && count == 2);
        EXPECT(galatea_model_run(shared.model, NULL, 2, outputs, 2, &count) == GALATEA_STATUS_NULL_ARGUMENT);
    }

    /* Freed twice, used after it was freed, and taken for something else. */
    CHECK(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, sizeof ones, &tensor));
    CHECK(galatea_tensor_free(tensor));
    EXPECT(galatea_tensor_free(tensor) == GALATEA_STATUS_INVALID_HANDLE);
    EXPECT(galatea_tensor_copy(tensor, ones, sizeof ones) == GALATEA_STATUS_INVALID_HANDLE);
    EXPECT(galatea_tensor_free((galatea_tensor *)(void *)engine) == GALATEA_STATUS_INVALID_HANDLE);

    /* Threads share a model, which is freed under them. */
    for (int at = 0; at < THREADS; ++at) {
        EXPECT(pthread_create(&threads[at], NULL, run, &shared) == 0);
    }
    CHECK(galatea_model_free(shared.model));
    for (int at = 0; at < THREADS; ++at) {
        EXPECT(pthread_join(threads[at], NULL) == 0);
    }
    CHECK(galatea_tensor_free(shared.input));
    CHECK(galatea_engine_free(engine));
    EXPECT(galatea_engine_free(engine) == GALATEA_STATUS_INVALID_HANDLE);
    puts("every misuse was told");
    return 0;
}
