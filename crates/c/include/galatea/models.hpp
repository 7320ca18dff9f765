// Models: graphs, language models, encoders, and servers of repositories.

#ifndef GALATEA_MODELS_HPP
#define GALATEA_MODELS_HPP

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "tensor.hpp"

namespace galatea {

// Tensors of a run by the names of the inputs.
using Inputs = std::vector<std::pair<std::string, const Tensor *>>;

namespace detail {

inline const char *or_null(const std::string &text) {
    return text.empty() ? nullptr : text.c_str();
}

inline std::vector<galatea_named_tensor> named(const Inputs &inputs) {
    std::vector<galatea_named_tensor> all;
    for (const auto &input : inputs) {
        all.push_back({input.first.c_str(), input.second == nullptr ? nullptr : input.second->get()});
    }
    return all;
}

// Owns the first handles of a run's outputs.
inline std::vector<Tensor> owned(const std::vector<galatea_tensor *> &handles, size_t count) {
    std::vector<Tensor> all(count);
    for (size_t at = 0; at < count; ++at) {
        *all[at].place() = handles[at];
    }
    return all;
}

} // namespace detail

// Options for loading a model; empty texts stand for the usual values.
struct ModelOptions {
    std::string device;
    std::string precision;
    std::string function;
    uint32_t threads = 0;
};

// Input or output of a model; -1 stands for lengths that a run decides.
struct Value {
    std::string name;
    int32_t type = GALATEA_TYPE_OTHER;
    Shape shape;
};

// A model that is ready to run. Several threads may run it at once.
class Model {
public:
    Model() = default;

    static Returned<Model> Load(galatea_engine *engine, const std::string &path, const ModelOptions &options = {}) {
        auto raw = detail::sized<galatea_model_options>();
        raw.device = detail::or_null(options.device);
        raw.precision = detail::or_null(options.precision);
        raw.function = detail::or_null(options.function);
        raw.threads = options.threads;
        Model model;
        Status status = galatea_model_load(engine, path.c_str(), &raw, model.handle_.place());
        if (status == GALATEA_STATUS_OK) {
            status = galatea_model_counts(model.get(), &model.inputs_, &model.outputs_);
        }
        return detail::finish(status, std::move(model));
    }

    static Returned<Model> Load(const Engine &engine, const std::string &path, const ModelOptions &options = {}) {
        return Load(engine.get(), path, options);
    }

    Returned<std::vector<Value>> GetInputs() const { return values(inputs_, galatea_model_input); }
    Returned<std::vector<Value>> GetOutputs() const { return values(outputs_, galatea_model_output); }

    // Names the devices that run the parts of the model, such as "cpu".
    Returned<std::string> Devices() const {
        detail::Text names;
        const Status status = galatea_model_devices(get(), names.place());
        return detail::finish(status, detail::text(names));
    }

    // Tells the memory that the model holds, as JSON.
    Returned<std::string> Memory() const {
        detail::Text json;
        const Status status = galatea_model_memory(get(), json.place());
        return detail::finish(status, detail::text(json));
    }

    // Runs the model and waits for its outputs, in the order of GetOutputs.
    Returned<std::vector<Tensor>> Run(const Inputs &inputs) const {
        const auto named = detail::named(inputs);
        std::vector<galatea_tensor *> outputs(outputs_ == 0 ? 1 : outputs_, nullptr);
        size_t count = 0;
        const Status status =
            galatea_model_run(get(), named.data(), named.size(), outputs.data(), outputs.size(), &count);
        return detail::finish(status, detail::owned(outputs, status == GALATEA_STATUS_OK ? count : 0));
    }

    galatea_model *get() const noexcept { return handle_.get(); }

private:
    using Describe = galatea_status (*)(const galatea_model *, size_t, galatea_value_info *);

    Returned<std::vector<Value>> values(size_t count, Describe describe) const {
        std::vector<Value> all;
        Status status = GALATEA_STATUS_OK;
        for (size_t at = 0; at < count && status == GALATEA_STATUS_OK; ++at) {
            auto info = detail::sized<galatea_value_info>();
            status = describe(get(), at, &info);
            if (status == GALATEA_STATUS_OK) {
                all.push_back({info.name, info.value_type, Shape(info.lengths, info.lengths + info.rank)});
            }
        }
        return detail::finish(status, std::move(all));
    }

    detail::Handle<galatea_model, galatea_model_free> handle_;
    size_t inputs_ = 0;
    size_t outputs_ = 0;
};

// Options for loading a language model or an encoder; empty texts and zeros stand for the usual values.
struct LanguageModelOptions {
    std::string device;
    std::string dtype;
    std::string quantization;
    std::string kv_cache_dtype;
    std::string speculative_model;
    size_t max_model_len = 0;
    size_t max_num_seqs = 0;
    size_t kv_cache_memory_bytes = 0;

    galatea_llm_options raw() const {
        auto raw = detail::sized<galatea_llm_options>();
        raw.device = detail::or_null(device);
        raw.dtype = detail::or_null(dtype);
        raw.quantization = detail::or_null(quantization);
        raw.kv_cache_dtype = detail::or_null(kv_cache_dtype);
        raw.speculative_model = detail::or_null(speculative_model);
        raw.max_model_len = max_model_len;
        raw.max_num_seqs = max_num_seqs;
        raw.kv_cache_memory_bytes = kv_cache_memory_bytes;
        return raw;
    }
};

struct Message {
    std::string role;
    std::string content;
};

using GenerationOptions = galatea_generation_options;
using TokenUsage = galatea_token_usage;

// Takes a piece of an answer; false cancels the answer. It must not throw.
using OnPiece = std::function<bool(int32_t kind, const std::string &text)>;

// An answer: its content and its counts.
struct Answer {
    std::string content;
    TokenUsage usage = detail::sized<galatea_token_usage>();
};

namespace detail {

inline int32_t tell_piece(void *context, int32_t kind, const char *text, size_t length) {
    const auto &callback = *static_cast<const OnPiece *>(context);
    return callback(kind, std::string(text, length)) ? 0 : 1;
}

} // namespace detail

// Settings of an answer, all of them the model's own.
inline GenerationOptions UsualGeneration() {
    return detail::sized<galatea_generation_options>();
}

// An answer under way. Another thread may cancel it.
class Stream {
public:
    Stream() = default;

    // Waits for the next piece; false at the end of the answer.
    Returned<bool> Next(std::string &piece, int32_t *kind = nullptr) {
        detail::Text text;
        const Status status = galatea_stream_next(get(), kind, text.place());
        if (status == GALATEA_STATUS_END) {
            return false;
        }
        piece = detail::text(text);
        return detail::finish(status, true);
    }

    Returned<void> Cancel() const { return detail::finish(galatea_stream_cancel(get())); }

    Returned<TokenUsage> Usage() const {
        auto usage = detail::sized<galatea_token_usage>();
        const Status status = galatea_stream_usage(get(), &usage);
        return detail::finish(status, usage);
    }

    galatea_stream *get() const noexcept { return handle_.get(); }
    galatea_stream **place() { return handle_.place(); }

private:
    detail::Handle<galatea_stream, galatea_stream_free> handle_;
};

// A language model. Several threads may ask it at once.
class LanguageModel {
public:
    LanguageModel() = default;

    static Returned<LanguageModel> Load(galatea_engine *engine, const std::string &path,
                                        const LanguageModelOptions &options = {}) {
        const auto raw = options.raw();
        LanguageModel model;
        const Status status = galatea_llm_load(engine, path.c_str(), &raw, model.handle_.place());
        return detail::finish(status, std::move(model));
    }

    // Tells sizes, the cache of keys and values, and what was generated, as JSON.
    Returned<std::string> Describe() const {
        detail::Text json;
        const Status status = galatea_llm_describe(get(), json.place());
        return detail::finish(status, detail::text(json));
    }

    // Divides a text into tokens.
    Returned<std::vector<uint32_t>> Tokenize(const std::string &text) const {
        size_t count = 0;
        Status status = galatea_llm_tokenize(get(), text.c_str(), nullptr, 0, &count);
        std::vector<uint32_t> tokens(count);
        if (status == GALATEA_STATUS_TOO_SMALL) {
            status = galatea_llm_tokenize(get(), text.c_str(), tokens.data(), count, &count);
        }
        return detail::finish(status, std::move(tokens));
    }

    // Continues a text.
    Returned<Answer> Generate(const std::string &prompt, const GenerationOptions &options = UsualGeneration(),
                              const OnPiece &callback = {}) const {
        Answer answer;
        detail::Text text;
        const Status status =
            galatea_llm_generate(get(), prompt.c_str(), &options, callback ? detail::tell_piece : nullptr,
                                 const_cast<OnPiece *>(&callback), text.place(), &answer.usage);
        answer.content = detail::text(text);
        return detail::finish(status, std::move(answer));
    }

    // Answers a conversation.
    Returned<Answer> Chat(const std::vector<Message> &messages, const GenerationOptions &options = UsualGeneration(),
                          const OnPiece &callback = {}) const {
        const auto raw = RawMessages(messages);
        Answer answer;
        detail::Text text;
        const Status status =
            galatea_llm_chat(get(), raw.data(), raw.size(), &options, callback ? detail::tell_piece : nullptr,
                             const_cast<OnPiece *>(&callback), text.place(), &answer.usage);
        answer.content = detail::text(text);
        return detail::finish(status, std::move(answer));
    }

    // Begins to answer a conversation.
    Returned<Stream> StreamChat(const std::vector<Message> &messages,
                                const GenerationOptions &options = UsualGeneration()) const {
        const auto raw = RawMessages(messages);
        Stream stream;
        const Status status = galatea_llm_stream_chat(get(), raw.data(), raw.size(), &options, stream.place());
        return detail::finish(status, std::move(stream));
    }

    galatea_llm *get() const noexcept { return handle_.get(); }

private:
    static std::vector<galatea_chat_message> RawMessages(const std::vector<Message> &messages) {
        std::vector<galatea_chat_message> raw;
        for (const auto &message : messages) {
            raw.push_back({message.role.c_str(), message.content.c_str()});
        }
        return raw;
    }

    detail::Handle<galatea_llm, galatea_llm_free> handle_;
};

// A model that makes vectors of texts.
class Encoder {
public:
    Encoder() = default;

    static Returned<Encoder> Load(galatea_engine *engine, const std::string &path,
                                  const LanguageModelOptions &options = {}) {
        const auto raw = options.raw();
        Encoder encoder;
        Status status = galatea_encoder_load(engine, path.c_str(), &raw, encoder.handle_.place());
        if (status == GALATEA_STATUS_OK) {
            status = galatea_encoder_sizes(encoder.get(), &encoder.dimensions_, nullptr);
        }
        return detail::finish(status, std::move(encoder));
    }

    size_t Dimensions() const noexcept { return dimensions_; }

    // Computes the vectors of texts, one behind the other.
    Returned<std::vector<float>> Embed(const std::vector<std::string> &texts) const {
        std::vector<const char *> starts;
        for (const auto &text : texts) {
            starts.push_back(text.c_str());
        }
        std::vector<float> vectors(texts.size() * (dimensions_ == 0 ? 1 : dimensions_));
        const Status status =
            galatea_encoder_embed(get(), starts.data(), starts.size(), vectors.data(), vectors.size());
        return detail::finish(status, std::move(vectors));
    }

    galatea_encoder *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<galatea_encoder, galatea_encoder_free> handle_;
    size_t dimensions_ = 0;
};

namespace detail {

inline galatea_status stop_server(galatea_server *server) {
    return galatea_server_stop(server, 10000, nullptr);
}

} // namespace detail

// Options of a server. Ports are of the loopback interface: 0 for no front end, -1 for any free port.
struct ServerOptions {
    std::string device;
    std::vector<std::string> models;
    int32_t http_port = 0;
    int32_t grpc_port = 0;
    int32_t metrics_port = 0;
};

// A server of a model repository in this process.
class Server {
public:
    Server() = default;

    // Starts a server of the models that the options name, or of all.
    static Returned<Server> Start(galatea_engine *engine, const std::string &repository,
                                  const ServerOptions &options = {}) {
        std::vector<const char *> names;
        for (const auto &name : options.models) {
            names.push_back(name.c_str());
        }
        auto raw = detail::sized<galatea_server_options>();
        raw.device = detail::or_null(options.device);
        raw.models = names.empty() ? nullptr : names.data();
        raw.model_count = names.size();
        raw.http_port = options.http_port;
        raw.grpc_port = options.grpc_port;
        raw.metrics_port = options.metrics_port;
        Server server;
        const Status status = galatea_server_start(engine, repository.c_str(), &raw, server.handle_.place());
        return detail::finish(status, std::move(server));
    }

    // Tells the address of a front end, such as "127.0.0.1:8000".
    Returned<std::string> Address(galatea_front_end front_end = GALATEA_FRONT_END_HTTP) const {
        detail::Text address;
        const Status status = galatea_server_address(get(), front_end, address.place());
        return detail::finish(status, detail::text(address));
    }

    // Runs a model through its queue and its batcher. `most` is the most outputs that it gives.
    Returned<std::vector<Tensor>> Infer(const std::string &model, const Inputs &inputs, size_t most = 64) const {
        const auto named = detail::named(inputs);
        std::vector<galatea_tensor *> outputs(most, nullptr);
        size_t count = 0;
        const Status status = galatea_server_infer(get(), model.c_str(), named.data(), named.size(), outputs.data(),
                                                   outputs.size(), &count);
        return detail::finish(status, detail::owned(outputs, status == GALATEA_STATUS_OK ? count : 0));
    }

    // Stops the server; requests under way have ten seconds.
    void Stop() { handle_.reset(); }

    galatea_server *get() const noexcept { return handle_.get(); }

private:
    detail::Handle<galatea_server, detail::stop_server> handle_;
};

} // namespace galatea

#endif // GALATEA_MODELS_HPP
