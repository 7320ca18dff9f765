/* Looks at the machine, multiplies and convolves on it, and uses pools, hints, profiles, power, tuning and a server. */

#include <string.h>

#include "check.h"

#define ZEROED(type, name)           \
    type name;                       \
    memset(&name, 0, sizeof name);   \
    name.size = sizeof name

static void print(const char *title, galatea_text *text) {
    const char *data = NULL;
    CHECK(galatea_text_data(text, &data, NULL));
    printf("%s: %.300s\n", title, data);
    CHECK(galatea_text_free(text));
}

static void multiply(galatea_engine *engine) {
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
    const int64_t two_by_three[2] = {2, 3}, three_by_two[2] = {3, 2};
    const char *devices[2] = {"cpu", NULL};
    float product[4];
    galatea_tensor *first = NULL, *second = NULL, *result = NULL;
    ZEROED(galatea_gemm_options, options);

    CHECK(galatea_tensor_create(GALATEA_TYPE_FP32, two_by_three, 2, a, sizeof a, &first));
    CHECK(galatea_tensor_create(GALATEA_TYPE_FP32, three_by_two, 2, b, sizeof b, &second));
    for (int at = 0; at < 2; ++at) {
        int32_t unit = -1;
        options.device = devices[at];
        options.alpha = 2.0f;
        CHECK(galatea_gemm(engine, &options, first, second, NULL, &result, &unit));
        CHECK(galatea_tensor_copy(result, product, sizeof product));
        EXPECT(product[0] == 8.0f && product[1] == 10.0f && product[2] == 20.0f && product[3] == 22.0f);
        EXPECT(at == 1 || unit == GALATEA_UNIT_CPU);
        CHECK(galatea_tensor_free(result));
    }
    options.device = "abacus";
    EXPECT(galatea_gemm(engine, &options, first, second, NULL, &result, NULL) == GALATEA_STATUS_DEVICE);
    EXPECT(galatea_gemm(engine, NULL, first, first, NULL, &result, NULL) == GALATEA_STATUS_INPUT);
    CHECK(galatea_tensor_free(first));
    CHECK(galatea_tensor_free(second));
}

static void convolve(galatea_engine *engine) {
    const int64_t image[4] = {1, 1, 4, 4}, window[4] = {1, 1, 3, 3};
    const size_t bytes = 16 * sizeof(float);
    float *pixels = NULL, sums[16];
    const float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    galatea_buffer *buffer = NULL;
    galatea_tensor *images = NULL, *weights = NULL, *result = NULL;
    void *memory = NULL;
    int32_t unit = -1;
    ZEROED(galatea_convolution_options, options);
    ZEROED(galatea_pool_statistics, pool);

    CHECK(galatea_buffer_create(engine, bytes, &buffer));
    CHECK(galatea_buffer_data(buffer, &memory, NULL));
    pixels = memory;
    for (int at = 0; at < 16; ++at) {
        pixels[at] = 1.0f;
    }
    CHECK(galatea_buffer_tensor(buffer, GALATEA_TYPE_FP32, image, 4, &images));
    CHECK(galatea_tensor_create(GALATEA_TYPE_FP32, window, 4, ones, sizeof ones, &weights));
    for (int at = 0; at < 4; ++at) {
        options.pads[at] = 1;
    }
    CHECK(galatea_convolution(engine, &options, images, weights, NULL, &result, &unit));
    CHECK(galatea_tensor_copy(result, sums, sizeof sums));
    EXPECT(sums[0] == 4.0f && sums[1] == 6.0f && sums[5] == 9.0f);
    CHECK(galatea_tensor_free(images));
    CHECK(galatea_tensor_free(weights));
    CHECK(galatea_tensor_free(result));
    CHECK(galatea_buffer_free(buffer));
    CHECK(galatea_pool_read(engine, &pool));
    EXPECT(pool.requests == 1 && pool.peak_bytes >= bytes);
    printf("the pool keeps %zu bytes\n", pool.kept_bytes);
    CHECK(galatea_pool_limit(engine, 0));
    CHECK(galatea_pool_read(engine, &pool));
    EXPECT(pool.kept_bytes == 0);
}

static void foresee(void) {
    const size_t bytes = (size_t)4 << 20;
    char *memory = calloc(1, bytes);
    galatea_region *region = NULL;
    ZEROED(galatea_region_statistics, statistics);

    EXPECT(memory != NULL);
    CHECK(galatea_region_register(memory, bytes, GALATEA_ACCESS_ADAPTIVE, &region));
    for (size_t offset = 0; offset < bytes; offset += bytes / 64) {
        CHECK(galatea_region_access(region, offset, bytes / 64));
    }
    EXPECT(galatea_region_access(region, bytes, 1) == GALATEA_STATUS_INVALID_ARGUMENT);
    CHECK(galatea_region_prefetch(region, 0, bytes));
    CHECK(galatea_region_read(region, &statistics));
    EXPECT(statistics.accesses == 64 && statistics.foreseen > 32);
    printf("%d of %d accesses were foreseen\n", (int)statistics.foreseen, (int)statistics.accesses);
    CHECK(galatea_region_free(region));
    free(memory);
}

static void measure(galatea_engine *engine) {
    const int64_t lengths[2] = {1, 16};
    int32_t ones[16] = {0};
    galatea_model *model = NULL, *plain = NULL;
    galatea_tensor *input = NULL, *outputs[2] = {NULL, NULL};
    galatea_named_tensor named[2] = {{"INPUT0", NULL}, {"INPUT1", NULL}};
    galatea_text *text = NULL, *trace = NULL;
    size_t count = 0;
    ZEROED(galatea_model_options, reference);
    ZEROED(galatea_comparison_options, limits);
    ZEROED(galatea_comparison, comparison);
    ZEROED(galatea_power_options, power);
    ZEROED(galatea_power_metrics, metrics);

    reference.device = "reference";
    CHECK(galatea_model_load(engine, "examples/models/simple", NULL, &model));
    CHECK(galatea_model_load(engine, "examples/models/simple", &reference, &plain));
    CHECK(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, sizeof ones, &input));
    named[0].tensor = input;
    named[1].tensor = input;

    power.target_watts = 25.0;
    CHECK(galatea_power_start(engine, &power));
    CHECK(galatea_monitor_start(engine, NULL));
    EXPECT(galatea_monitor_start(engine, NULL) == GALATEA_STATUS_RUN);
    for (int at = 0; at < 10; ++at) {
        CHECK(galatea_model_run(model, named, 2, outputs, 2, &count));
        CHECK(galatea_tensor_free(outputs[0]));
        CHECK(galatea_tensor_free(outputs[1]));
    }
    CHECK(galatea_monitor_metrics(engine, &text));
    print("metrics", text);
    CHECK(galatea_monitor_bottlenecks(engine, 3, &text));
    print("bottlenecks", text);
    CHECK(galatea_monitor_stop(engine, &text, &trace));
    print("summary", text);
    print("trace", trace);
    CHECK(galatea_power_read(engine, &metrics));
    printf("power is %smeasured, the pace is %.2f\n", metrics.is_measured ? "" : "not ", metrics.pace);
    CHECK(galatea_power_stop(engine));

    limits.samples = 8;
    CHECK(galatea_compare_models(model, plain, named, 2, &limits, &comparison));
    printf("%.0f ns and %.0f ns, %d is faster\n", comparison.first_ns, comparison.second_ns, (int)comparison.faster);
    EXPECT(comparison.agrees == 1);

    CHECK(galatea_model_memory(model, &text));
    print("memory", text);
    CHECK(galatea_tensor_free(input));
    CHECK(galatea_model_free(model));
    CHECK(galatea_model_free(plain));
}

static void tune(galatea_engine *engine) {
    const int64_t lengths[4] = {1, 1, 8, 8};
    const float pixels[64] = {0};
    galatea_model *model = NULL;
    galatea_tensor *image = NULL;
    galatea_named_tensor named[1] = {{"IMAGE", NULL}};
    galatea_text *text = NULL;
    const char *data = NULL;
    ZEROED(galatea_tuning_options, options);

    CHECK(galatea_model_load(engine, "examples/models/digits", NULL, &model));
    CHECK(galatea_tensor_create(GALATEA_TYPE_FP32, lengths, 4, pixels, sizeof pixels, &image));
    named[0].tensor = image;
    CHECK(galatea_tuning_space(model, named, 1, &text));
    CHECK(galatea_text_data(text, &data, NULL));
    EXPECT(strstr(data, "candidates") != NULL);
    print("choices", text);
    options.strategy = "genetic";
    options.max_trials = 4;
    options.time_ms = 500;
    CHECK(galatea_tuning_run(model, named, 1, &options, &text));
    CHECK(galatea_text_data(text, &data, NULL));
    EXPECT(strstr(data, "default_ns") != NULL);
    print("tuned", text);
    options.strategy = "guess";
    EXPECT(galatea_tuning_run(model, named, 1, &options, &text) == GALATEA_STATUS_INVALID_ARGUMENT);
    CHECK(galatea_tensor_free(image));
    CHECK(galatea_model_free(model));
}

static void serve(galatea_engine *engine) {
    const char *names[1] = {"simple"};
    const int64_t lengths[2] = {1, 16};
    int32_t ones[16] = {0}, sums[16];
    galatea_server *server = NULL;
    galatea_tensor *input = NULL, *outputs[2] = {NULL, NULL};
    galatea_text *address = NULL;
    size_t count = 0, unanswered = 1;
    ZEROED(galatea_server_options, options);

    options.models = names;
    options.model_count = 1;
    options.http_port = -1;
    CHECK(galatea_server_start(engine, "examples/models", &options, &server));
    CHECK(galatea_server_address(server, GALATEA_FRONT_END_HTTP, &address));
    print("HTTP", address);
    EXPECT(galatea_server_address(server, GALATEA_FRONT_END_GRPC, &address) == GALATEA_STATUS_UNSUPPORTED);
    ones[0] = 21;
    CHECK(galatea_tensor_create(GALATEA_TYPE_INT32, lengths, 2, ones, sizeof ones, &input));
    {
        const galatea_named_tensor named[2] = {{"INPUT0", input}, {"INPUT1", input}};
        CHECK(galatea_server_infer(server, "simple", named, 2, outputs, 2, &count));
        EXPECT(galatea_server_infer(server, "none", named, 2, outputs, 2, &count) == GALATEA_STATUS_SERVER);
    }
    CHECK(galatea_tensor_copy(outputs[0], sums, sizeof sums));
    EXPECT(sums[0] == 42);
    CHECK(galatea_tensor_free(outputs[0]));
    CHECK(galatea_tensor_free(outputs[1]));
    CHECK(galatea_tensor_free(input));
    CHECK(galatea_server_stop(server, 10000, &unanswered));
    EXPECT(unanswered == 0);
    EXPECT(galatea_server_stop(server, 0, NULL) == GALATEA_STATUS_INVALID_HANDLE);
}

int main(void) {
    galatea_engine *engine = NULL;
    galatea_text *devices = NULL;
    ZEROED(galatea_capabilities, found);

    CHECK(galatea_engine_create(NULL, &engine));
    CHECK(galatea_engine_capabilities(engine, &found));
    printf("%u cores, %u GPUs, matrix unit %d, Neural Engine %d\n", (unsigned)found.cpu_cores, (unsigned)found.gpus,
           (int)found.has_matrix_unit, (int)found.has_neural_engine);
    EXPECT(found.cpu_cores > 0);
    CHECK(galatea_engine_devices(engine, &devices));
    print("devices", devices);
    multiply(engine);
    convolve(engine);
    foresee();
    measure(engine);
    tune(engine);
    serve(engine);
    CHECK(galatea_engine_free(engine));
    return 0;
}
