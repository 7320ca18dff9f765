// Providers by device: matrix unit and CPU, CPU and GPU together, Neural Engine, and transformers.
//
// On every system the same calls use what is there. The unit that a call reports is the one that computed.

#ifndef GALATEA_PROVIDERS_HPP
#define GALATEA_PROVIDERS_HPP

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "models.hpp"
#include "tensor.hpp"

namespace galatea {

// Sizes and settings of a matrix multiplication: C = alpha * A * B + beta * C, row after row.
struct GemmShape {
    int64_t m = 0;
    int64_t n = 0;
    int64_t k = 0;
    float alpha = 1.0f;
    float beta = 0.0f;
    bool transpose_a = false;
    bool transpose_b = false;
};

using ConvolutionOptions = galatea_convolution_options;

// Settings of a convolution with steps of one and no padding.
inline ConvolutionOptions UsualConvolution() {
    return detail::sized<galatea_convolution_options>();
}

// What a provider has computed since it was initialised.
struct OperationMetrics {
    uint64_t calls = 0;
    uint64_t failures = 0;
    double operations = 0.0;
    double seconds = 0.0;
    Unit last_unit = Unit::AUTO;

    double Gflops() const { return seconds > 0.0 ? operations / seconds / 1e9 : 0.0; }
};

namespace detail {

// Adds up what was computed, for several threads.
class OperationMeter {
public:
    using Clock = std::chrono::steady_clock;

    void Add(Status status, Clock::time_point begin, double operations, int32_t unit) {
        const std::chrono::duration<double> time = Clock::now() - begin;
        const std::lock_guard<std::mutex> lock(mutex_);
        metrics_.calls += 1;
        if (status != GALATEA_STATUS_OK) {
            metrics_.failures += 1;
            return;
        }
        metrics_.operations += operations;
        metrics_.seconds += time.count();
        metrics_.last_unit = static_cast<Unit>(unit);
    }

    OperationMetrics Get() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return metrics_;
    }

private:
    mutable std::mutex mutex_;
    OperationMetrics metrics_;
};

// Multiplies tensors; C is null where beta is 0.
inline Status gemm(galatea_engine *engine, const char *device, const GemmShape &shape, galatea_tensor *a,
                   galatea_tensor *b, galatea_tensor *c, Tensor &result, int32_t &unit) {
    auto options = sized<galatea_gemm_options>();
    options.device = device;
    options.alpha = shape.alpha;
    options.beta = shape.beta;
    options.transpose_a = shape.transpose_a;
    options.transpose_b = shape.transpose_b;
    return galatea_gemm(engine, &options, a, b, c, result.place(), &unit);
}

inline Shape shape_a(const GemmShape &shape) {
    return shape.transpose_a ? Shape{shape.k, shape.m} : Shape{shape.m, shape.k};
}

inline Shape shape_b(const GemmShape &shape) {
    return shape.transpose_b ? Shape{shape.n, shape.k} : Shape{shape.k, shape.n};
}

inline double operations(const GemmShape &shape) {
    return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

// Copies a matrix of the program.
inline Status copy_matrix(const Shape &shape, const float *data, Tensor &tensor) {
    const size_t bytes = static_cast<size_t>(shape[0] * shape[1]) * sizeof(float);
    return galatea_tensor_create(GALATEA_TYPE_FP32, shape.data(), 2, data, bytes, tensor.place());
}

} // namespace detail

// Matrix multiplication and convolution on the CPU: its matrix unit (AMX, SME) where it has one, else its vector units.
class AMXProvider {
public:
    static AMXProvider &Instance() {
        static AMXProvider provider;
        return provider;
    }

    // Checks that the library is there and fits the headers.
    Returned<void> Initialize() { return GetCapabilitiesInto(capabilities_); }

    // Tells whether the CPU has a matrix unit, and what is estimated of it.
    Returned<Capabilities> GetCapabilities() const {
        auto found = detail::sized<galatea_capabilities>();
        const Status status = galatea_engine_capabilities(detail::shared_engine(), &found);
        return detail::finish(status, found);
    }

    // Multiplies matrices of the program, which are copied.
    Returned<Unit> ExecuteGEMM(const GemmShape &shape, const float *a, const float *b, float *c) {
        Tensor first, second, third, result;
        Status status = detail::copy_matrix(detail::shape_a(shape), a, first);
        if (status == GALATEA_STATUS_OK) {
            status = detail::copy_matrix(detail::shape_b(shape), b, second);
        }
        if (status == GALATEA_STATUS_OK && shape.beta != 0.0f) {
            status = detail::copy_matrix({shape.m, shape.n}, c, third);
        }
        int32_t unit = GALATEA_UNIT_AUTO;
        if (status == GALATEA_STATUS_OK) {
            status = Multiply(shape, first, second, third, result, unit);
        }
        if (status == GALATEA_STATUS_OK) {
            status = galatea_tensor_copy(result.get(), c, static_cast<size_t>(shape.m * shape.n) * sizeof(float));
        }
        return detail::finish(status, static_cast<Unit>(unit));
    }

    // Multiplies tensors, which are not copied. The shape's m, n and k only count for the metrics.
    Returned<Tensor> GEMM(const GemmShape &shape, const Tensor &a, const Tensor &b, const Tensor &c = Tensor()) {
        Tensor result;
        int32_t unit = GALATEA_UNIT_AUTO;
        const Status status = Multiply(shape, a, b, c, result, unit);
        return detail::finish(status, std::move(result));
    }

    // Convolves images [N, C, H, W] with weights [M, C/groups, h, w] and adds a bias [M], if one is given.
    Returned<Tensor> Convolution(const ConvolutionOptions &options, const Tensor &images, const Tensor &weights,
                                 const Tensor &bias = Tensor()) {
        auto raw = options;
        raw.device = "cpu";
        Tensor result;
        int32_t unit = GALATEA_UNIT_AUTO;
        const auto begin = detail::OperationMeter::Clock::now();
        const Status status = galatea_convolution(detail::shared_engine(), &raw, images.get(), weights.get(),
                                                  bias.get(), result.place(), &unit);
        meter_.Add(status, begin, ConvolutionOperations(weights, result), unit);
        return detail::finish(status, std::move(result));
    }

    // Tells what was computed since the program began.
    OperationMetrics GetMetrics() const { return meter_.Get(); }

private:
    AMXProvider() = default;

    static Returned<void> GetCapabilitiesInto(Capabilities &found) {
        found = detail::sized<galatea_capabilities>();
        return detail::finish(galatea_engine_capabilities(detail::shared_engine(), &found));
    }

    Status Multiply(const GemmShape &shape, const Tensor &a, const Tensor &b, const Tensor &c, Tensor &result,
                    int32_t &unit) {
        const auto begin = detail::OperationMeter::Clock::now();
        const Status status =
            detail::gemm(detail::shared_engine(), "cpu", shape, a.get(), b.get(), c.get(), result, unit);
        meter_.Add(status, begin, detail::operations(shape), unit);
        return status;
    }

    // Two operations for each weight that meets an element of the result.
    static double ConvolutionOperations(const Tensor &weights, const Tensor &result) {
        auto window = detail::sized<galatea_tensor_info>();
        auto made = detail::sized<galatea_tensor_info>();
        if (galatea_tensor_describe(weights.get(), &window) != GALATEA_STATUS_OK ||
            galatea_tensor_describe(result.get(), &made) != GALATEA_STATUS_OK || window.rank == 0) {
            return 0.0;
        }
        const double each = static_cast<double>(window.elements) / static_cast<double>(window.lengths[0]);
        return 2.0 * each * static_cast<double>(made.elements);
    }

    detail::OperationMeter meter_;
    Capabilities capabilities_{};
};

// Where a matrix multiplication is computed.
enum class ExecutionLocation { AUTO, AMX, METAL };

// Work on memory that the CPU and the GPU get without a copy of the program's.
class AMXMetalInterop {
public:
    static AMXMetalInterop &Instance() {
        static AMXMetalInterop interop;
        return interop;
    }

    // Takes a buffer for matrices. Where CPU and GPU do not share memory, the library copies it to the GPU.
    Returned<Buffer> CreateUnifiedBuffer(size_t bytes) { return Buffer::Create(detail::shared_engine(), bytes); }

    // Multiplies the matrices of buffers, on the CPU, on the GPU, or where it is predicted to be faster. METAL fails
    // where there is no GPU.
    Returned<Unit> ExecuteGEMM(const GemmShape &shape, const Buffer &a, const Buffer &b, Buffer &c,
                               ExecutionLocation location = ExecutionLocation::AUTO) {
        const char *device = location == ExecutionLocation::AMX     ? "cpu"
                             : location == ExecutionLocation::METAL ? "gpu"
                                                                    : nullptr;
        Tensor first, second, third, result;
        int32_t unit = GALATEA_UNIT_AUTO;
        Status status = View(a, detail::shape_a(shape), first);
        if (status == GALATEA_STATUS_OK) {
            status = View(b, detail::shape_b(shape), second);
        }
        if (status == GALATEA_STATUS_OK && shape.beta != 0.0f) {
            status = View(c, {shape.m, shape.n}, third);
        }
        const auto begin = detail::OperationMeter::Clock::now();
        if (status == GALATEA_STATUS_OK) {
            status = detail::gemm(detail::shared_engine(), device, shape, first.get(), second.get(), third.get(),
                                  result, unit);
        }
        meter_.Add(status, begin, detail::operations(shape), unit);
        if (status == GALATEA_STATUS_OK) {
            status = galatea_tensor_copy(result.get(), c.data(), c.size());
        }
        return detail::finish(status, static_cast<Unit>(unit));
    }

    OperationMetrics GetMetrics() const { return meter_.Get(); }

private:
    AMXMetalInterop() = default;

    static Status View(const Buffer &buffer, const Shape &shape, Tensor &tensor) {
        return galatea_buffer_tensor(buffer.get(), GALATEA_TYPE_FP32, shape.data(), shape.size(), tensor.place());
    }

    detail::OperationMeter meter_;
};

// Preference between speed and low power.
enum class PowerMode { HIGH_PERFORMANCE, BALANCED, LOW_POWER };

namespace detail {

inline const char *policy(PowerMode mode) {
    return mode == PowerMode::HIGH_PERFORMANCE ? "high_performance"
           : mode == PowerMode::LOW_POWER      ? "low_power"
                                               : "balanced";
}

} // namespace detail

// What there is of a Neural Engine, and what runs on it.
struct ANECapabilities {
    bool is_available = false;
    bool supports_dynamic_shapes = false;
    bool supports_transformers = false;
    bool supports_sparse_weights = false;
    double fp16_tops = 0.0;
};

// Models on the Neural Engine. Without one, other devices run them; GetUnit says which.
class ANEProvider {
public:
    static ANEProvider &Instance() {
        static ANEProvider provider;
        return provider;
    }

    Returned<void> Initialize() { return detail::finish(galatea_require_abi(GALATEA_ABI_VERSION)); }

    Returned<ANECapabilities> GetCapabilities() const {
        auto found = detail::sized<galatea_capabilities>();
        const Status status = galatea_engine_capabilities(detail::shared_engine(), &found);
        ANECapabilities capabilities;
        capabilities.is_available = found.has_neural_engine != 0;
        capabilities.supports_dynamic_shapes = found.dynamic_shapes != 0;
        capabilities.supports_transformers = found.transformers != 0;
        capabilities.supports_sparse_weights = found.sparse_weights != 0;
        capabilities.fp16_tops = found.neural_engine_tops;
        return detail::finish(status, capabilities);
    }

    // Loads a model under a name, which stands for an earlier one no more.
    Returned<void> LoadModel(const std::string &name, const std::string &path) {
        auto options = detail::sized<galatea_model_options>();
        auto model = std::make_shared<LoadedModel>();
        Status status = galatea_model_load(detail::shared_engine(), path.c_str(), &options, model->handle.place());
        if (status == GALATEA_STATUS_OK) {
            status = galatea_model_counts(model->handle.get(), nullptr, &model->outputs);
        }
        if (status == GALATEA_STATUS_OK) {
            const std::lock_guard<std::mutex> lock(mutex_);
            models_[name] = std::move(model);
        }
        return detail::finish(status);
    }

    // Runs a model and waits for its outputs.
    Returned<std::vector<Tensor>> Execute(const std::string &name, const Inputs &inputs) const {
        const auto model = Find(name);
        if (!model) {
            return detail::refuse<std::vector<Tensor>>(GALATEA_STATUS_INVALID_ARGUMENT, "no model '" + name + "'");
        }
        const auto named = detail::named(inputs);
        std::vector<galatea_tensor *> outputs(std::max<size_t>(model->outputs, 1), nullptr);
        size_t count = 0;
        const Status status = galatea_model_run(model->handle.get(), named.data(), named.size(), outputs.data(),
                                                outputs.size(), &count);
        return detail::finish(status, detail::owned(outputs, status == GALATEA_STATUS_OK ? count : 0));
    }

    // Names the devices that run a model, such as "coreml" or "cpu".
    Returned<std::string> GetUnit(const std::string &name) const {
        const auto model = Find(name);
        if (!model) {
            return detail::refuse<std::string>(GALATEA_STATUS_INVALID_ARGUMENT, "no model '" + name + "'");
        }
        detail::Text devices;
        const Status status = galatea_model_devices(model->handle.get(), devices.place());
        return detail::finish(status, detail::text(devices));
    }

    void UnloadModel(const std::string &name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        models_.erase(name);
    }

    // Prefers speed or low power from now on, for all models of the providers.
    Returned<void> SetPowerMode(PowerMode mode) {
        auto options = detail::sized<galatea_power_options>();
        options.policy = detail::policy(mode);
        return detail::finish(galatea_power_start(detail::shared_engine(), &options));
    }

private:
    struct LoadedModel {
        detail::Handle<galatea_model, galatea_model_free> handle;
        size_t outputs = 0;
    };

    ANEProvider() = default;

    std::shared_ptr<LoadedModel> Find(const std::string &name) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = models_.find(name);
        return found == models_.end() ? nullptr : found->second;
    }

    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<LoadedModel>> models_;
};

// Kind of a transformer and how much memory it may have.
struct TransformerConfig {
    enum class Kind { BERT, GPT, T5, LLAMA };

    Kind kind = Kind::LLAMA;
    LanguageModelOptions options;

    // An encoder.
    static TransformerConfig BERT() { return Of(Kind::BERT); }
    // A decoder.
    static TransformerConfig GPT() { return Of(Kind::GPT); }
    // An encoder and a decoder.
    static TransformerConfig T5() { return Of(Kind::T5); }
    // A decoder with rotary positions.
    static TransformerConfig LLaMA() { return Of(Kind::LLAMA); }

private:
    static TransformerConfig Of(Kind kind) {
        TransformerConfig config;
        config.kind = kind;
        return config;
    }
};

// A transformer of a checkpoint. Its cache of keys and values is shared by the requests and grows in blocks; what
// requests begin with in common is kept.
class ANETransformerEngine {
public:
    ANETransformerEngine() = default;

    // Loads a checkpoint: an encoder where the configuration says BERT, else a language model.
    static Returned<ANETransformerEngine> Load(const std::string &path, const TransformerConfig &config) {
        const auto raw = config.options.raw();
        ANETransformerEngine engine;
        engine.kind_ = config.kind;
        Status status = GALATEA_STATUS_OK;
        if (config.kind == TransformerConfig::Kind::BERT) {
            status = galatea_encoder_load(detail::shared_engine(), path.c_str(), &raw, engine.encoder_.place());
        } else {
            status = galatea_llm_load(detail::shared_engine(), path.c_str(), &raw, engine.llm_.place());
        }
        return detail::finish(status, std::move(engine));
    }

    // Continues a text.
    Returned<Answer> Generate(const std::string &prompt, const GenerationOptions &options = UsualGeneration(),
                              const OnPiece &callback = {}) const {
        Answer answer;
        detail::Text text;
        const Status status =
            galatea_llm_generate(llm_.get(), prompt.c_str(), &options, callback ? detail::tell_piece : nullptr,
                                 const_cast<OnPiece *>(&callback), text.place(), &answer.usage);
        answer.content = detail::text(text);
        return detail::finish(status, std::move(answer));
    }

    // Computes the vectors of texts, one behind the other.
    Returned<std::vector<float>> Encode(const std::vector<std::string> &texts) const {
        size_t dimensions = 0;
        Status status = galatea_encoder_sizes(encoder_.get(), &dimensions, nullptr);
        std::vector<const char *> starts;
        for (const auto &text : texts) {
            starts.push_back(text.c_str());
        }
        std::vector<float> vectors(texts.size() * std::max<size_t>(dimensions, 1));
        if (status == GALATEA_STATUS_OK) {
            status = galatea_encoder_embed(encoder_.get(), starts.data(), starts.size(), vectors.data(), vectors.size());
        }
        return detail::finish(status, std::move(vectors));
    }

    // Tells sizes and use of the cache of keys and values, as JSON.
    Returned<std::string> GetKVCacheStatistics() const {
        detail::Text json;
        const Status status = galatea_llm_describe(llm_.get(), json.place());
        return detail::finish(status, detail::text(json));
    }

    TransformerConfig::Kind kind() const noexcept { return kind_; }

private:
    TransformerConfig::Kind kind_ = TransformerConfig::Kind::LLAMA;
    detail::Handle<galatea_llm, galatea_llm_free> llm_;
    detail::Handle<galatea_encoder, galatea_encoder_free> encoder_;
};

} // namespace galatea

#endif // GALATEA_PROVIDERS_HPP
