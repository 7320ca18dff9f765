// Uses the C++ library without exceptions: results.cpp, compiled with -fno-exceptions -DGALATEA_NO_EXCEPTIONS

#ifndef GALATEA_NO_EXCEPTIONS
#define GALATEA_NO_EXCEPTIONS
#endif

#include <cstdio>

#include <galatea.hpp>

int main() {
    auto engine = galatea::Engine::Create();
    if (!engine) {
        std::fprintf(stderr, "%s\n", engine.error().what());
        return 1;
    }
    const auto missing = galatea::Model::Load(*engine, "no such file.onnx");
    if (missing || missing.error().status() != GALATEA_STATUS_FILE) {
        std::fprintf(stderr, "a missing file was not refused\n");
        return 1;
    }
    std::printf("refused: %s\n", missing.error().what());
    auto model = galatea::Model::Load(*engine, "examples/models/simple");
    auto ones = galatea::Tensor::Copy<int32_t>({1, 16}, std::vector<int32_t>(16, 1));
    if (!model || !ones) {
        return 1;
    }
    auto outputs = model->Run({{"INPUT0", &*ones}, {"INPUT1", &*ones}});
    if (!outputs) {
        std::fprintf(stderr, "%s\n", outputs.error().what());
        return 1;
    }
    auto sums = outputs->at(0).ToVector<int32_t>();
    if (!sums || sums->at(0) != 2) {
        return 1;
    }
    auto wrong = outputs->at(0).ToVector<float>();
    if (wrong || wrong.error().status() != GALATEA_STATUS_INVALID_ARGUMENT) {
        return 1;
    }
    auto unit = galatea::ANEProvider::Instance().Execute("nothing", {});
    if (unit) {
        return 1;
    }
    std::puts("no exception was needed");
    return 0;
}
