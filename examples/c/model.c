/* Runs a model on tensors of the program's own memory: model.c [MODEL] */

#include <string.h>

#include "check.h"

static void release(void *context) {
    *(int *)context += 1;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "examples/models/simple";
    int32_t ones[16], twos[16];
    const int64_t lengths[2] = {1, 16};
    int released = 0;
    size_t count = 0;
    galatea_engine *engine = NULL;
    galatea_model *model = NULL;
    galatea_tensor *inputs[2] = {NULL, NULL}, *outputs[2] = {NULL, NULL};
    galatea_text *devices = NULL;
    const char *names = NULL;

    CHECK(galatea_require_abi(GALATEA_ABI_VERSION));
    CHECK(galatea_engine_create(NULL, &engine));
    CHECK(galatea_model_load(engine, path, NULL, &model));
    CHECK(galatea_model_devices(model, &devices));
    CHECK(galatea_text_data(devices, &names, NULL));
    printf("%s runs on %s\n", path, names);
    CHECK(galatea_text_free(devices));

    for (size_t at = 0; at < 2; ++at) {
        galatea_value_info info;
        memset(&info, 0, sizeof info);
        info.size = sizeof info;
        CHECK(galatea_model_input(model, at, &info));
        printf("input %s has %zu axes\n", info.name, info.rank);
    }
    for (int at = 0; at < 16; ++at) {
        ones[at] = 1;
        twos[at] = 2;
    }
    /* The first tensor is a copy, the second is the program's memory until it is released. */
    CHECK(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, sizeof ones, &inputs[0]));
    CHECK(galatea_tensor_wrap(GALATEA_TYPE_INT32, lengths, 2, twos, sizeof twos, release, &released, &inputs[1]));
    {
        const galatea_named_tensor named[2] = {{"INPUT0", inputs[0]}, {"INPUT1", inputs[1]}};
        CHECK(galatea_model_run(model, named, 2, outputs, 2, &count));
    }
    for (size_t at = 0; at < count; ++at) {
        const void *data = NULL;
        size_t bytes = 0;
        galatea_value_info info;
        memset(&info, 0, sizeof info);
        info.size = sizeof info;
        CHECK(galatea_model_output(model, at, &info));
        CHECK(galatea_tensor_data(outputs[at], &data, &bytes));
        EXPECT(bytes == sizeof ones);
        printf("%s begins with %d\n", info.name, (int)*(const int32_t *)data);
        EXPECT(*(const int32_t *)data == (at == 0 ? 3 : -1));
        CHECK(galatea_tensor_free(outputs[at]));
    }
    CHECK(galatea_tensor_free(inputs[0]));
    CHECK(galatea_tensor_free(inputs[1]));
    CHECK(galatea_model_free(model));
    EXPECT(released == 1);
    CHECK(galatea_engine_free(engine));
    return 0;
}
