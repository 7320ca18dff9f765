// Engines: the devices of the machine, with what models share.

#ifndef GALATEA_ENGINE_HPP
#define GALATEA_ENGINE_HPP

#include <string>

#include "result.hpp"

namespace galatea {

using Capabilities = galatea_capabilities;

// Device that computes something.
enum class Unit : int32_t {
    AUTO = GALATEA_UNIT_AUTO,
    CPU = GALATEA_UNIT_CPU,
    GPU = GALATEA_UNIT_GPU,
    NEURAL_ENGINE = GALATEA_UNIT_NEURAL_ENGINE,
    REFERENCE = GALATEA_UNIT_REFERENCE,
};

// The devices of this machine, with what models on them share.
class Engine {
public:
    // Makes an engine. `gpu_memory_limit` is such as "8GiB" or "60%"; empty for what the GPU recommends.
    static Returned<Engine> Create(const std::string &gpu_memory_limit = std::string()) {
        auto options = detail::sized<galatea_engine_options>();
        options.gpu_memory_limit = gpu_memory_limit.empty() ? nullptr : gpu_memory_limit.c_str();
        Engine engine;
        Status status = galatea_require_abi(GALATEA_ABI_VERSION);
        if (status == GALATEA_STATUS_OK) {
            status = galatea_engine_create(&options, engine.handle_.place());
        }
        return detail::finish(status, std::move(engine));
    }

    // Tells what the machine and the library can do.
    Returned<Capabilities> GetCapabilities() const {
        auto found = detail::sized<galatea_capabilities>();
        const Status status = galatea_engine_capabilities(get(), &found);
        return detail::finish(status, found);
    }

    // Lists the devices of the machine as a JSON array.
    Returned<std::string> Devices() const {
        detail::Text json;
        const Status status = galatea_engine_devices(get(), json.place());
        return detail::finish(status, detail::text(json));
    }

    galatea_engine *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<galatea_engine, galatea_engine_free> handle_;
};

namespace detail {

// The engine of the classes that have one instance for the process; null where it could not be made.
inline galatea_engine *shared_engine() {
    struct Shared {
        Handle<galatea_engine, galatea_engine_free> handle;
        Shared() {
            if (galatea_require_abi(GALATEA_ABI_VERSION) == GALATEA_STATUS_OK) {
                galatea_engine_create(nullptr, handle.place());
            }
        }
    };
    static Shared shared;
    return shared.handle.get();
}

} // namespace detail

} // namespace galatea

#endif // GALATEA_ENGINE_HPP
