// Tools: performance monitor, autotuner, prefetcher, devices of models, and pools of memory.

#ifndef GALATEA_TOOLS_HPP
#define GALATEA_TOOLS_HPP

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

using PowerMetrics = galatea_power_metrics;
using Comparison = galatea_comparison;
using ComparisonOptions = galatea_comparison_options;

// Limits of a comparison, all of them the usual ones.
inline ComparisonOptions UsualComparison() {
    return detail::sized<galatea_comparison_options>();
}

// What a profile adds up to, and its events in Chrome's format, both as JSON.
struct ProfileReport {
    std::string summary;
    std::string trace;
};

// Profiles of the models of the engine of the classes with one instance, or of another engine.
class MetalPerformanceMonitor {
public:
    static MetalPerformanceMonitor &Instance() {
        static MetalPerformanceMonitor monitor(detail::shared_engine());
        return monitor;
    }

    // A monitor of another engine, which must live as long.
    explicit MetalPerformanceMonitor(galatea_engine *engine) : engine_(engine) {}

    Returned<void> StartMonitoring() {
        return detail::finish(galatea_monitor_start(engine_, nullptr));
    }

    Returned<ProfileReport> StopMonitoring() {
        detail::Text summary, trace;
        const Status status = galatea_monitor_stop(engine_, summary.place(), trace.place());
        return detail::finish(status, ProfileReport{detail::text(summary), detail::text(trace)});
    }

    // Tells what the profile under way adds up to so far, as JSON.
    Returned<std::string> GetMetrics() const {
        detail::Text json;
        const Status status = galatea_monitor_metrics(engine_, json.place());
        return detail::finish(status, detail::text(json));
    }

    // Lists the operators that take most of the time and what bounds them, as a JSON array.
    Returned<std::string> GetBottlenecks(size_t limit = 10) const {
        detail::Text json;
        const Status status = galatea_monitor_bottlenecks(engine_, limit, json.place());
        return detail::finish(status, detail::text(json));
    }

    // Holds a number of watts from now on; 0 for no target. Nothing is held on machines without sensors:
    // GetPowerMetrics().is_measured says so.
    Returned<void> SetPowerTarget(double watts) {
        auto options = detail::sized<galatea_power_options>();
        options.target_watts = watts;
        return detail::finish(galatea_power_start(engine_, &options));
    }

    Returned<PowerMetrics> GetPowerMetrics() const {
        auto metrics = detail::sized<galatea_power_metrics>();
        const Status status = galatea_power_read(engine_, &metrics);
        return detail::finish(status, metrics);
    }

    // Compares two models on the same inputs.
    Returned<Comparison> RunABTest(const Model &first, const Model &second, const Inputs &inputs,
                                   const ComparisonOptions &options = UsualComparison()) const {
        const auto named = detail::named(inputs);
        auto result = detail::sized<galatea_comparison>();
        const Status status =
            galatea_compare_models(first.get(), second.get(), named.data(), named.size(), &options, &result);
        return detail::finish(status, result);
    }

private:
    galatea_engine *engine_;
};

enum class SearchStrategy { AUTOMATIC, EXHAUSTIVE, ADAPTIVE, GENETIC, GRID };

// Limits of a search for the fastest kernels; zeros and empty texts stand for the usual values.
struct TuningConstraints {
    SearchStrategy strategy = SearchStrategy::AUTOMATIC;
    size_t max_trials = 0;
    std::chrono::milliseconds max_time{0};
    // Part of the name of a family of kernels.
    std::string family;
    // File to which the records are added.
    std::string file;
};

// Search for the fastest kernels of models.
class MetalKernelAutotuner {
public:
    static MetalKernelAutotuner &Instance() {
        static MetalKernelAutotuner tuner;
        return tuner;
    }

    // Lists the choices between kernels and their candidates, as a JSON array.
    Returned<std::string> GetConfigurationSpace(const Model &model, const Inputs &inputs) const {
        const auto named = detail::named(inputs);
        detail::Text json;
        const Status status = galatea_tuning_space(model.get(), named.data(), named.size(), json.place());
        return detail::finish(status, detail::text(json));
    }

    // Measures the choices and tells the fastest candidates, as a JSON array.
    Returned<std::string> Tune(const Model &model, const Inputs &inputs,
                               const TuningConstraints &constraints = {}) const {
        const auto named = detail::named(inputs);
        auto options = detail::sized<galatea_tuning_options>();
        options.strategy = Name(constraints.strategy);
        options.family = detail::or_null(constraints.family);
        options.file = detail::or_null(constraints.file);
        options.max_trials = constraints.max_trials;
        options.time_ms = static_cast<uint64_t>(constraints.max_time.count());
        detail::Text json;
        const Status status = galatea_tuning_run(model.get(), named.data(), named.size(), &options, json.place());
        return detail::finish(status, detail::text(json));
    }

private:
    MetalKernelAutotuner() = default;

    static const char *Name(SearchStrategy strategy) {
        switch (strategy) {
        case SearchStrategy::EXHAUSTIVE:
            return "exhaustive";
        case SearchStrategy::ADAPTIVE:
            return "adaptive";
        case SearchStrategy::GENETIC:
            return "genetic";
        case SearchStrategy::GRID:
            return "grid";
        case SearchStrategy::AUTOMATIC:
            break;
        }
        return nullptr;
    }
};

// How a region is read.
enum class AccessHint : int32_t {
    USUAL = GALATEA_ACCESS_USUAL,
    STREAMING = GALATEA_ACCESS_STREAMING,
    TEMPORAL = GALATEA_ACCESS_TEMPORAL,
    SCATTERED = GALATEA_ACCESS_SCATTERED,
    ADAPTIVE = GALATEA_ACCESS_ADAPTIVE,
};

using RegionStatistics = galatea_region_statistics;

// A range of memory that hints are given for. The memory must be mapped as long as the region lives.
class Region {
public:
    Region() = default;

    // Hints that a part is read soon.
    Returned<void> Prefetch(size_t offset, size_t bytes) const {
        return detail::finish(galatea_region_prefetch(get(), offset, bytes));
    }

    // Tells of an access, from which an adaptive region foresees the next ones.
    Returned<void> Access(size_t offset, size_t bytes) const {
        return detail::finish(galatea_region_access(get(), offset, bytes));
    }

    Returned<RegionStatistics> GetStatistics() const {
        auto statistics = detail::sized<galatea_region_statistics>();
        const Status status = galatea_region_read(get(), &statistics);
        return detail::finish(status, statistics);
    }

    galatea_region *get() const noexcept { return handle_.get(); }
    galatea_region **place() { return handle_.place(); }

private:
    detail::Handle<galatea_region, galatea_region_free> handle_;
};

// Hints on how memory is going to be read. They bring parts of mapped files to memory; other memory is near already.
class PrefetcherManager {
public:
    static PrefetcherManager &Instance() {
        static PrefetcherManager manager;
        return manager;
    }

    Returned<Region> RegisterRegion(const void *data, size_t bytes, AccessHint hint = AccessHint::USUAL) {
        Region region;
        const Status status =
            galatea_region_register(data, bytes, static_cast<int32_t>(hint), region.place());
        return detail::finish(status, std::move(region));
    }

    // A region that is read once, from the begin to the end.
    Returned<Region> StreamingHint(const void *data, size_t bytes) {
        return RegisterRegion(data, bytes, AccessHint::STREAMING);
    }

    // A region that is read again and again.
    Returned<Region> TemporalHint(const void *data, size_t bytes) {
        return RegisterRegion(data, bytes, AccessHint::TEMPORAL);
    }

    // A region whose next accesses are foreseen.
    Returned<Region> AdaptiveHint(const void *data, size_t bytes) {
        return RegisterRegion(data, bytes, AccessHint::ADAPTIVE);
    }

private:
    PrefetcherManager() = default;
};

// Devices of the machine, and which models run on which.
class MetalDeviceManager {
public:
    static MetalDeviceManager &Instance() {
        static MetalDeviceManager manager;
        return manager;
    }

    // Lists the devices as a JSON array.
    Returned<std::string> GetDevices() const {
        detail::Text json;
        const Status status = galatea_engine_devices(detail::shared_engine(), json.place());
        return detail::finish(status, detail::text(json));
    }

    // Binds a model, by its name, to a device such as "cpu", "gpu:0" or "gpu,cpu"; an empty text frees it.
    void SetAffinity(const std::string &model, const std::string &device) {
        const std::lock_guard<std::mutex> lock(mutex_);
        affinities_[model] = device;
    }

    // Tells the device that a model is bound to; an empty text where it is not.
    std::string GetAffinity(const std::string &model) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = affinities_.find(model);
        return found == affinities_.end() ? std::string() : found->second;
    }

    // Loads a model on the device that it is bound to.
    Returned<Model> LoadModel(const std::string &name, const std::string &path) const {
        ModelOptions options;
        options.device = GetAffinity(name);
        return Model::Load(detail::shared_engine(), path, options);
    }

private:
    MetalDeviceManager() = default;

    mutable std::mutex mutex_;
    std::map<std::string, std::string> affinities_;
};

using PoolStatistics = galatea_pool_statistics;

// Buffers of a pool.
class MetalAllocator {
public:
    Returned<Buffer> Allocate(size_t bytes) { return Buffer::Create(engine(), bytes); }

    Returned<PoolStatistics> GetStatistics() const {
        auto statistics = detail::sized<galatea_pool_statistics>();
        const Status status = galatea_pool_read(engine(), &statistics);
        return detail::finish(status, statistics);
    }

    // Limits the bytes that the pool keeps for later buffers; 0 keeps nothing.
    Returned<void> SetPoolLimit(size_t bytes) { return detail::finish(galatea_pool_limit(engine(), bytes)); }

    // Tells the memory of the GPUs that models have opened, as a JSON array.
    Returned<std::string> GetGpuMemory() const {
        detail::Text json;
        const Status status = galatea_engine_gpu_memory(detail::shared_engine(), json.place());
        return detail::finish(status, detail::text(json));
    }

private:
    friend MetalAllocator &GetMetalAllocator(int device);

    explicit MetalAllocator(bool shared) {
        if (!shared) {
            galatea_engine_create(nullptr, own_.place());
        }
    }

    galatea_engine *engine() const { return own_ ? own_.get() : detail::shared_engine(); }

    detail::Handle<galatea_engine, galatea_engine_free> own_;
};

// Returns the pool of a device, which is made when it is asked for. Its memory is the host's; chips whose CPU and GPU
// share memory have no other.
inline MetalAllocator &GetMetalAllocator(int device) {
    static std::mutex mutex;
    static std::map<int, std::unique_ptr<MetalAllocator>> allocators;
    const std::lock_guard<std::mutex> lock(mutex);
    auto &allocator = allocators[device];
    if (!allocator) {
        allocator.reset(new MetalAllocator(device == 0));
    }
    return *allocator;
}

} // namespace galatea

#endif // GALATEA_TOOLS_HPP
