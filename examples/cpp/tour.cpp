// Uses each class of the C++ library once: tour.cpp

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <galatea.hpp>

namespace {

void expect(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "not so: %s (last error: %s)\n", what, galatea_last_error());
        std::exit(EXIT_FAILURE);
    }
}

void models(const galatea::Engine &engine) {
    auto model = galatea::Model::Load(engine, "examples/models/simple");
    for (const auto &input : model.GetInputs()) {
        std::printf("input %s has %zu axes\n", input.name.c_str(), input.shape.size());
    }
    const auto copied = galatea::Tensor::Copy<int32_t>({1, 16}, std::vector<int32_t>(16, 1));
    const auto taken = galatea::Tensor::Take<int32_t>({1, 16}, std::vector<int32_t>(16, 2));
    const auto outputs = model.Run({{"INPUT0", &copied}, {"INPUT1", &taken}});
    expect(outputs.size() == 2 && outputs[0].ToVector<int32_t>()[15] == 3, "the sum is 3");
    expect(model.Devices().find("cpu") != std::string::npos, "the CPU runs it");

    // Handles move and are not copied.
    galatea::Model moved = std::move(model);
    expect(model.get() == nullptr && moved.get() != nullptr, "the handle moved");
    std::vector<std::thread> threads;
    for (int at = 0; at < 3; ++at) {
        threads.emplace_back([&] { expect(moved.Run({{"INPUT0", &copied}, {"INPUT1", &taken}}).size() == 2, "it runs"); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    try {
        moved.Run({{"INPUT0", &copied}});
        expect(false, "a missing input is refused");
    } catch (const galatea::Error &error) {
        std::printf("refused: %s (%s)\n", error.what(), galatea_status_name(error.status()));
    }
    const auto texts = galatea::Tensor::Strings({2}, {"one", std::string("t\0o", 3)});
    expect(texts.StringAt(1).size() == 3, "texts may have zero bytes");
}

void providers() {
    auto &amx = galatea::AMXProvider::Instance();
    amx.Initialize();
    std::printf("matrix unit: %d\n", amx.GetCapabilities().has_matrix_unit);
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
    float c[4] = {1, 1, 1, 1};
    galatea::GemmShape shape;
    shape.m = 2, shape.n = 2, shape.k = 3, shape.beta = 10.0f;
    expect(amx.ExecuteGEMM(shape, a, b, c) == galatea::Unit::CPU, "the CPU computed");
    expect(c[0] == 14.0f && c[3] == 21.0f, "the product is added to C");
    const auto images = galatea::Tensor::Copy<float>({1, 1, 3, 3}, std::vector<float>(9, 1.0f));
    const auto weights = galatea::Tensor::Copy<float>({1, 1, 3, 3}, std::vector<float>(9, 2.0f));
    const auto result = amx.Convolution(galatea::UsualConvolution(), images, weights);
    expect(result.ToVector<float>().at(0) == 18.0f, "the window is summed up");
    expect(amx.GetMetrics().calls == 2 && amx.GetMetrics().operations == 24.0 + 18.0, "both calls are counted");

    auto &interop = galatea::AMXMetalInterop::Instance();
    const auto first = interop.CreateUnifiedBuffer(sizeof a);
    const auto second = interop.CreateUnifiedBuffer(sizeof b);
    auto third = interop.CreateUnifiedBuffer(sizeof c);
    std::copy(a, a + 6, first.as<float>());
    std::copy(b, b + 6, second.as<float>());
    shape.beta = 0.0f;
    interop.ExecuteGEMM(shape, first, second, third);
    expect(third.as<float>()[0] == 4.0f, "AUTO computes the product");
    expect(interop.ExecuteGEMM(shape, first, second, third, galatea::ExecutionLocation::AMX) == galatea::Unit::CPU,
           "AMX means the CPU");
    try {
        const auto unit = interop.ExecuteGEMM(shape, first, second, third, galatea::ExecutionLocation::METAL);
        expect(unit == galatea::Unit::GPU, "METAL means the GPU");
    } catch (const galatea::Error &error) {
        expect(error.status() == GALATEA_STATUS_DEVICE, "there is no GPU");
    }

    auto &ane = galatea::ANEProvider::Instance();
    ane.Initialize();
    ane.SetPowerMode(galatea::PowerMode::LOW_POWER);
    ane.LoadModel("simple", "examples/models/simple");
    const auto ones = galatea::Tensor::Copy<int32_t>({1, 16}, std::vector<int32_t>(16, 1));
    expect(ane.Execute("simple", {{"INPUT0", &ones}, {"INPUT1", &ones}}).size() == 2, "the model runs");
    const auto capabilities = ane.GetCapabilities();
    std::printf("Neural Engine: %d, 'simple' runs on %s\n", capabilities.is_available, ane.GetUnit("simple").c_str());
    expect(capabilities.supports_dynamic_shapes && capabilities.supports_transformers, "both run");
    ane.UnloadModel("simple");
    ane.SetPowerMode(galatea::PowerMode::BALANCED);
}

void transformers() {
    auto options = galatea::UsualGeneration();
    options.max_tokens = 8;
    auto config = galatea::TransformerConfig::LLaMA();
    config.options.kv_cache_memory_bytes = 64 << 20;
    const auto engine = galatea::ANETransformerEngine::Load("examples/models/chat", config);
    int pieces = 0;
    const auto answer = engine.Generate("Once upon a time", options, [&](int32_t, const std::string &) {
        ++pieces;
        return true;
    });
    expect(pieces > 0 && answer.usage.completion_tokens > 0, "tokens were generated");
    expect(engine.GetKVCacheStatistics().find("kv_cache") != std::string::npos, "the cache is described");
    const auto encoder = galatea::ANETransformerEngine::Load("examples/encoder", galatea::TransformerConfig::BERT());
    expect(!encoder.Encode({"A cat."}).empty(), "the text has a vector");
    try {
        encoder.Generate("An encoder does not write");
        expect(false, "an encoder generates nothing");
    } catch (const galatea::Error &error) {
        expect(error.status() == GALATEA_STATUS_NULL_ARGUMENT, "there is no language model");
    }
    const auto model = galatea::LanguageModel::Load(galatea::detail::shared_engine(), "examples/models/chat");
    expect(!model.Chat({{"user", "Hello!"}}, options).content.empty(), "it answers");
    auto stream = model.StreamChat({{"user", "Hello!"}}, options);
    std::string piece, whole;
    while (stream.Next(piece)) {
        whole += piece;
    }
    expect(stream.Usage().completion_tokens > 0 && !whole.empty(), "the stream ends with counts");
    expect(model.Tokenize("Hello!").size() > 0, "the text has tokens");
}

void tools(const galatea::Engine &engine) {
    galatea::MetalPerformanceMonitor monitor(engine.get());
    const auto model = galatea::Model::Load(engine, "examples/models/simple");
    const auto ones = galatea::Tensor::Copy<int32_t>({1, 16}, std::vector<int32_t>(16, 1));
    const galatea::Inputs inputs = {{"INPUT0", &ones}, {"INPUT1", &ones}};
    monitor.StartMonitoring();
    model.Run(inputs);
    expect(monitor.GetMetrics().find("models") != std::string::npos, "the run is in the metrics");
    expect(monitor.GetBottlenecks(1).find("operator") != std::string::npos, "an operator takes most of the time");
    expect(monitor.StopMonitoring().summary.find("seconds") != std::string::npos, "the profile has a time");
    monitor.SetPowerTarget(30.0);
    std::printf("watts are measured: %d\n", monitor.GetPowerMetrics().is_measured);
    auto limits = galatea::UsualComparison();
    limits.samples = 6;
    expect(monitor.RunABTest(model, model, inputs, limits).agrees == 1, "a model agrees with itself");

    auto &tuner = galatea::MetalKernelAutotuner::Instance();
    expect(tuner.GetConfigurationSpace(model, inputs).front() == '[', "the choices are a list");
    galatea::TuningConstraints constraints;
    constraints.strategy = galatea::SearchStrategy::GRID;
    constraints.max_trials = 3;
    constraints.max_time = std::chrono::milliseconds(200);
    expect(tuner.Tune(model, inputs, constraints).front() == '[', "the tuned choices are a list");

    std::vector<char> memory(1 << 20);
    auto &prefetcher = galatea::PrefetcherManager::Instance();
    const auto streamed = prefetcher.StreamingHint(memory.data(), memory.size());
    const auto kept = prefetcher.TemporalHint(memory.data(), memory.size());
    const auto adaptive = prefetcher.AdaptiveHint(memory.data(), memory.size());
    adaptive.Access(0, 4096);
    streamed.Prefetch(0, 4096);
    expect(adaptive.GetStatistics().accesses == 1 && kept.GetStatistics().hints == 1, "hints are counted");

    auto &devices = galatea::MetalDeviceManager::Instance();
    devices.SetAffinity("simple", "reference");
    expect(devices.LoadModel("simple", "examples/models/simple").Devices() == "reference", "the model is bound");
    expect(devices.GetDevices().find("cpu") != std::string::npos, "the CPU is listed");

    auto &allocator = galatea::GetMetalAllocator(1);
    { const auto buffer = allocator.Allocate(1000); }
    const auto again = allocator.Allocate(2000);
    expect(allocator.GetStatistics().reused == 1 && again.size() == 2000, "the second buffer is the first");
    expect(&allocator == &galatea::GetMetalAllocator(1), "a device has one pool");

    galatea::ServerOptions options;
    options.models = {"simple"};
    options.http_port = -1;
    auto server = galatea::Server::Start(engine.get(), "examples/models", options);
    expect(server.Address().find("127.0.0.1:") == 0, "the server is on the loopback");
    expect(server.Infer("simple", inputs).size() == 2, "the server runs the model");
    server.Stop();
}

} // namespace

int main() {
    galatea::RequireAbi();
    const auto engine = galatea::Engine::Create();
    models(engine);
    providers();
    transformers();
    tools(engine);
    std::puts("the tour is at its end");
    return 0;
}
