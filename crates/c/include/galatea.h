/* The library of Galatea for C. Written by `cargo xtask c-header` from crates/c/src; docs/c-api.md explains it. */

#ifndef GALATEA_H
#define GALATEA_H

#include <stddef.h>
#include <stdint.h>

// Version of this header: the upper 16 bits change when old programs do not work any more, the lower 16 when
// functions or fields are added.
#define GALATEA_ABI_VERSION 65536

// Result of a call: 0, or a code that says what is wrong. `galatea_last_error` has the sentence.
enum galatea_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The call did what it says.
    GALATEA_STATUS_OK = 0,
    // A pointer that must not be null is null.
    GALATEA_STATUS_NULL_ARGUMENT = 1,
    // A handle was freed, is of another kind, or never came from this library.
    GALATEA_STATUS_INVALID_HANDLE = 2,
    // An argument has a value that is not allowed, such as a size.
    GALATEA_STATUS_INVALID_ARGUMENT = 3,
    // A file is missing, damaged, or of an unknown format.
    GALATEA_STATUS_FILE = 4,
    // A device is unknown or not present.
    GALATEA_STATUS_DEVICE = 5,
    // A model cannot be prepared.
    GALATEA_STATUS_MODEL = 6,
    // An input does not fit the model.
    GALATEA_STATUS_INPUT = 7,
    // A run failed.
    GALATEA_STATUS_RUN = 8,
    // A server cannot start, or refuses a request.
    GALATEA_STATUS_SERVER = 9,
    // The caller's memory is too small; the call tells the size that is needed.
    GALATEA_STATUS_TOO_SMALL = 10,
    // The caller has cancelled the work.
    GALATEA_STATUS_CANCELLED = 11,
    // This machine or this build does not have what was asked for.
    GALATEA_STATUS_UNSUPPORTED = 12,
    // A defect of the library was caught; the sentence is for a report.
    GALATEA_STATUS_INTERNAL = 13,
    // The header and the library are of different versions.
    GALATEA_STATUS_ABI_MISMATCH = 14,
    // There is nothing more: a stream is at its end.
    GALATEA_STATUS_END = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_status galatea_status;
#else
typedef int32_t galatea_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Type of a tensor's elements. The names are Triton's.
enum galatea_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // A type that this interface does not have.
    GALATEA_TYPE_OTHER = 0,
    // One byte, 0 or 1.
    GALATEA_TYPE_BOOL = 1,
    // Unsigned 8-bit integer.
    GALATEA_TYPE_UINT8 = 2,
    // Unsigned 16-bit integer.
    GALATEA_TYPE_UINT16 = 3,
    // Unsigned 32-bit integer.
    GALATEA_TYPE_UINT32 = 4,
    // Unsigned 64-bit integer.
    GALATEA_TYPE_UINT64 = 5,
    // Signed 8-bit integer.
    GALATEA_TYPE_INT8 = 6,
    // Signed 16-bit integer.
    GALATEA_TYPE_INT16 = 7,
    // Signed 32-bit integer.
    GALATEA_TYPE_INT32 = 8,
    // Signed 64-bit integer.
    GALATEA_TYPE_INT64 = 9,
    // IEEE 754 half precision.
    GALATEA_TYPE_FP16 = 10,
    // IEEE 754 single precision.
    GALATEA_TYPE_FP32 = 11,
    // IEEE 754 double precision.
    GALATEA_TYPE_FP64 = 12,
    // Brain floating point: the upper half of an FP32.
    GALATEA_TYPE_BF16 = 13,
    // Byte strings of any length.
    GALATEA_TYPE_BYTES = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_type galatea_type;
#else
typedef int32_t galatea_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Device that computes something.
enum galatea_unit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The choice is the library's, or several devices compute.
    GALATEA_UNIT_AUTO = 0,
    // The CPU, its matrix unit included.
    GALATEA_UNIT_CPU = 1,
    // A GPU.
    GALATEA_UNIT_GPU = 2,
    // The Neural Engine, or the interpreter of its programs where there is none.
    GALATEA_UNIT_NEURAL_ENGINE = 3,
    // The plain evaluation that kernels are tested against.
    GALATEA_UNIT_REFERENCE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_unit galatea_unit;
#else
typedef int32_t galatea_unit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A front end of a server.
enum galatea_front_end
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // HTTP: the protocols of KServe, Triton and OpenAI.
    GALATEA_FRONT_END_HTTP = 0,
    // gRPC.
    GALATEA_FRONT_END_GRPC = 1,
    // The page of metrics.
    GALATEA_FRONT_END_METRICS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_front_end galatea_front_end;
#else
typedef int32_t galatea_front_end;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Kind of a piece of an answer.
enum galatea_piece
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The content goes on.
    GALATEA_PIECE_CONTENT = 0,
    // Reasoning goes on.
    GALATEA_PIECE_REASONING = 1,
    // A call of a tool begins; the text is the name of the function.
    GALATEA_PIECE_CALL = 2,
    // The arguments of a call go on.
    GALATEA_PIECE_ARGUMENTS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_piece galatea_piece;
#else
typedef int32_t galatea_piece;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Pattern in which a region is read.
enum galatea_access
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The system decides.
    GALATEA_ACCESS_USUAL = 0,
    // Once, from the begin to the end: the system reads far ahead and drops what was read.
    GALATEA_ACCESS_STREAMING = 1,
    // Again and again: it is brought to memory at once, and stays as long as the system has room.
    GALATEA_ACCESS_TEMPORAL = 2,
    // Here and there: the system does not read ahead.
    GALATEA_ACCESS_SCATTERED = 3,
    // The next accesses are foreseen from those that `galatea_region_access` tells of.
    GALATEA_ACCESS_ADAPTIVE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum galatea_access galatea_access;
#else
typedef int32_t galatea_access;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Memory that the caller writes and models read without a copy.
typedef struct galatea_buffer galatea_buffer;

// A model that makes vectors of texts. Several threads may ask it at once.
typedef struct galatea_encoder galatea_encoder;

// The devices of this machine, with what models on them share.
typedef struct galatea_engine galatea_engine;

// A language model. Several threads may ask it at once; their requests are computed together.
typedef struct galatea_llm galatea_llm;

// A model that is ready to run. Several threads may run it at once.
typedef struct galatea_model galatea_model;

// A range of memory that hints are given for.
typedef struct galatea_region galatea_region;

// A server of model repositories.
typedef struct galatea_server galatea_server;

// An answer under way.
typedef struct galatea_stream galatea_stream;

// A tensor. It never changes, and may be used by several threads.
typedef struct galatea_tensor galatea_tensor;

// A text that a call has returned: UTF-8, often JSON.
typedef struct galatea_text galatea_text;

// Statistics of an engine's pool of buffers.
typedef struct galatea_pool_statistics {
    // `sizeof(galatea_pool_statistics)`, set by the caller.
    size_t size;
    // Bytes of buffers that are in use.
    size_t used_bytes;
    // Bytes of buffers that are kept for later ones.
    size_t kept_bytes;
    // The most bytes that were in use at once.
    size_t peak_bytes;
    // Buffers that were asked for.
    uint64_t requests;
    // Number of them that found a kept one.
    uint64_t reused;
    // The most bytes that are kept.
    size_t limit_bytes;
} galatea_pool_statistics;

// Abilities of the machine and of the library.
typedef struct galatea_capabilities {
    // `sizeof(galatea_capabilities)`, set by the caller.
    size_t size;
    // Cores of the CPU.
    uint32_t cpu_cores;
    // GPUs that are no emulation.
    uint32_t gpus;
    // GPUs that the CPU emulates.
    uint32_t emulated_gpus;
    // 1 if the CPU has a matrix unit that the library uses (AMX or SME).
    int32_t has_matrix_unit;
    // 1 if there is a Neural Engine.
    int32_t has_neural_engine;
    // 1 if the first GPU shares memory with the CPU.
    int32_t has_unified_memory;
    // 1: models with open lengths run, on the Neural Engine for the lengths that their packages have.
    int32_t dynamic_shapes;
    // 1: attention and caches of keys and values are operators of their own.
    int32_t transformers;
    // 1: sparse weights of Core ML are read. They are stored small; their zeros are multiplied like other numbers.
    int32_t sparse_weights;
    // Estimate of the CPU's matrix unit, Gflop/s of FP32; 0 where it is not known.
    double matrix_unit_gflops;
    // Estimate of the Neural Engine, 10^12 operations on FP16 a second; 0 where there is none.
    double neural_engine_tops;
    // Bytes of the machine's memory; 0 where it is not known.
    uint64_t memory_bytes;
} galatea_capabilities;

// Options for loading a language model or an encoder. Zeros stand for the usual values; the names are vLLM's.
typedef struct galatea_llm_options {
    // `sizeof(galatea_llm_options)`.
    size_t size;
    // Device that computes: "auto", "cpu", "gpu", "gpu:N" or "coreml".
    const char *device;
    // Type that the model computes in: "auto", "float32", "bfloat16" or "float16".
    const char *dtype;
    // Form to which weights are rounded when they are loaded.
    const char *quantization;
    // Type of stored keys and values.
    const char *kv_cache_dtype;
    // Source of speculative tokens: "ngram", or the path of a smaller checkpoint.
    const char *speculative_model;
    // The most tokens of a prompt and its answer.
    size_t max_model_len;
    // The most sequences that run together.
    size_t max_num_seqs;
    // The most memory of keys and values, in bytes.
    size_t kv_cache_memory_bytes;
    // 1 if requests share what they begin with, -1 if not.
    int32_t enable_prefix_caching;
} galatea_llm_options;

// Options of an engine. Zeros stand for the usual values.
typedef struct galatea_engine_options {
    // `sizeof(galatea_engine_options)`.
    size_t size;
    // Limit on the memory of each GPU, such as "8GiB" or "60%"; null for what the GPU recommends.
    const char *gpu_memory_limit;
} galatea_engine_options;

// Settings of an answer. Zeros stand for the model's own values.
typedef struct galatea_generation_options {
    // `sizeof(galatea_generation_options)`.
    size_t size;
    // The most tokens of the answer.
    uint32_t max_tokens;
    // 1 to take the most probable token each time.
    int32_t greedy;
    // Divides logits.
    float temperature;
    // Share of probability that the most probable tokens that remain have together.
    float top_p;
    // Least probability of a token, as a share of that of the most probable one.
    float min_p;
    // Divides positive and multiplies negative logits of tokens that were there.
    float repetition_penalty;
    // Number of the most probable tokens that remain.
    uint32_t top_k;
    // 1 if `seed` decides all random choices.
    int32_t has_seed;
    // Seed of random choices.
    uint64_t seed;
    // Texts that end the answer.
    const char *const *stop;
    // Number of these texts.
    size_t stop_count;
    // Priority; requests with lower values run first.
    int32_t priority;
    // 1 if the end tokens of the model do not end the answer.
    int32_t ignore_end;
} galatea_generation_options;

// Called with each piece of an answer, on the thread that waits for it. The text ends with a zero byte, which `length`
// does not count, and is valid until the callback returns. Any result but 0 cancels the answer.
typedef int32_t (*galatea_piece_callback)(void *context, int32_t kind, const char *text, size_t length);

// Counts of tokens and times of an answer.
typedef struct galatea_token_usage {
    // `sizeof(galatea_token_usage)`, set by the caller.
    size_t size;
    // Tokens of the prompt.
    size_t prompt_tokens;
    // Number of them that were found in the cache of keys and values.
    size_t cached_tokens;
    // Tokens of the answer.
    size_t completion_tokens;
    // Nanoseconds until the prompt began to be computed.
    uint64_t queue_ns;
    // Nanoseconds until the first token.
    uint64_t first_token_ns;
    // Nanoseconds until the end.
    uint64_t total_ns;
} galatea_token_usage;

// Message of a conversation.
typedef struct galatea_chat_message {
    // Role, such as "system", "user" or "assistant".
    const char *role;
    // Text.
    const char *content;
} galatea_chat_message;

// Options for loading a model. Zeros stand for the usual values.
typedef struct galatea_model_options {
    // `sizeof(galatea_model_options)`.
    size_t size;
    // Device or list of devices: "auto", "cpu", "gpu", "gpu:N", "coreml", "reference", or "gpu,cpu"; null for all.
    const char *device;
    // Precision of matrix multiplications and convolutions: "fp32", "bf16" or "fp16"; null for that of the model.
    const char *precision;
    // Function of a Core ML package that has several; null for the main one.
    const char *function;
    // Threads inside an operator; 0 for all cores.
    uint32_t threads;
} galatea_model_options;

// An input or output of a model.
typedef struct galatea_value_info {
    // `sizeof(galatea_value_info)`, set by the caller.
    size_t size;
    // Name; it belongs to the model.
    const char *name;
    // Type of the elements, a `galatea_type`.
    int32_t value_type;
    // 1 if the number of axes is known, else 0: then every shape is accepted.
    int32_t is_ranked;
    // Number of axes.
    size_t rank;
    // Lengths of the axes, -1 for those that a run decides; they belong to the model.
    const int64_t *lengths;
} galatea_value_info;

// A tensor by the name of an input.
typedef struct galatea_named_tensor {
    // Name of the input.
    const char *name;
    // The tensor.
    const struct galatea_tensor *tensor;
} galatea_named_tensor;

// Settings of a profile. Zeros stand for the usual values.
typedef struct galatea_monitor_options {
    // `sizeof(galatea_monitor_options)`.
    size_t size;
    // File for the events, in Chrome's format; null to keep them in memory.
    const char *trace_file;
    // The most events that are kept in memory; 0 for the usual number.
    uint64_t max_events;
    // 1 to measure the peaks of GPUs first, so that the bounds of their kernels are known.
    int32_t measure_peaks;
} galatea_monitor_options;

// Limits of a comparison. Zeros stand for the usual values.
typedef struct galatea_comparison_options {
    // `sizeof(galatea_comparison_options)`.
    size_t size;
    // The most runs of each model that are timed.
    size_t samples;
    // The most milliseconds to take, once there are enough runs to say anything.
    uint64_t time_ms;
    // Distance that results may have, relative to the largest of them.
    float tolerance;
} galatea_comparison_options;

// Result of a comparison of two models.
typedef struct galatea_comparison {
    // `sizeof(galatea_comparison)`, set by the caller.
    size_t size;
    // 1 if the first model is faster, 2 if the second is, 0 if chance may have made the difference.
    int32_t faster;
    // 1 if the results agree within the tolerance.
    int32_t agrees;
    // Median time of the first model, in nanoseconds.
    double first_ns;
    // Median time of the second model, in nanoseconds.
    double second_ns;
    // Time of the second as a share of the first's.
    double ratio;
    // Begin of the interval that holds the ratio with a confidence of 95 %.
    double ratio_low;
    // End of that interval.
    double ratio_high;
    // Chance that runs of equal models differ as much.
    double p;
    // Largest distance of two results, relative to the largest one.
    double distance;
} galatea_comparison;

// Settings of a matrix multiplication. Zeros stand for the product of both matrices as they lie.
typedef struct galatea_gemm_options {
    // `sizeof(galatea_gemm_options)`.
    size_t size;
    // Device: "cpu", "gpu", "gpu:N", "coreml" or "reference"; null or "auto" for the fastest.
    const char *device;
    // Factor of the product; 0 stands for 1.
    float alpha;
    // Factor of C; 0 stands for 1. Without C it has no meaning.
    float beta;
    // 1 if A lies transposed.
    int32_t transpose_a;
    // 1 if B lies transposed.
    int32_t transpose_b;
} galatea_gemm_options;

// Settings of a convolution. Zeros of strides, dilations and groups stand for 1.
typedef struct galatea_convolution_options {
    // `sizeof(galatea_convolution_options)`.
    size_t size;
    // Device, as in `galatea_gemm_options`.
    const char *device;
    // Steps along height and width.
    uint32_t strides[2];
    // Rows and columns of zeros: top, left, bottom, right.
    uint32_t pads[4];
    // Distances between elements of the window.
    uint32_t dilations[2];
    // Groups of channels.
    uint32_t groups;
} galatea_convolution_options;

// Settings of power. Zeros stand for the usual values.
typedef struct galatea_power_options {
    // `sizeof(galatea_power_options)`.
    size_t size;
    // Policy: "high_performance", "balanced" or "low_power"; null for "balanced".
    const char *policy;
    // Watts that the chip is to draw at most, on average over seconds; 0 for no target.
    double target_watts;
    // -1 if work is not slowed down before the machine throttles it.
    int32_t thermal_protection;
} galatea_power_options;

// Measurements of power. What the machine does not tell is NaN, or -1 for counts.
typedef struct galatea_power_metrics {
    // `sizeof(galatea_power_metrics)`, set by the caller.
    size_t size;
    // 1 if a sensor was read.
    int32_t is_measured;
    // Thermal state from 0 (nominal) to 3 (critical); -1 where it is not known.
    int32_t thermal_state;
    // Watts of the CPU, of the GPU, of the Neural Engine, of memory, of the chip, and of the whole machine.
    double cpu_watts;
    // Watts of the GPU.
    double gpu_watts;
    // Watts of the Neural Engine.
    double neural_engine_watts;
    // Watts of memory.
    double memory_watts;
    // Watts of the whole chip.
    double chip_watts;
    // Watts of the whole machine.
    double system_watts;
    // Joules of the whole chip since watching began.
    double chip_joules;
    // Degrees Celsius of the hottest part that is watched.
    double celsius;
    // Share of its full pace at which work runs, from 0 to 1.
    double pace;
    // Watts that are the target.
    double target_watts;
} galatea_power_metrics;

// Statistics of a region.
typedef struct galatea_region_statistics {
    // `sizeof(galatea_region_statistics)`, set by the caller.
    size_t size;
    // Accesses that were told.
    uint64_t accesses;
    // Number of them that lay in what had been foreseen.
    uint64_t foreseen;
    // Hints that were given to the system.
    uint64_t hints;
    // Bytes of these hints.
    uint64_t hinted_bytes;
    // Bytes ahead of an access that are foreseen at present.
    size_t distance_bytes;
} galatea_region_statistics;

// Options of a server. Zeros stand for the usual values, which open no front end.
typedef struct galatea_server_options {
    // `sizeof(galatea_server_options)`.
    size_t size;
    // Device or list of devices of models that ask for none; null for all.
    const char *device;
    // Names of the models to load; null for all.
    const char *const *models;
    // Number of these names.
    size_t model_count;
    // Port of the loopback for HTTP; 0 for no front end, -1 for any free port.
    int32_t http_port;
    // Port of the loopback for gRPC; 0 for no front end, -1 for any free port.
    int32_t grpc_port;
    // Port of the loopback for metrics; 0 for no front end, -1 for any free port.
    int32_t metrics_port;
} galatea_server_options;

// Called once when the library does not need memory any more, on any thread.
typedef void (*galatea_release)(void *context);

// Type and shape of a tensor.
typedef struct galatea_tensor_info {
    // `sizeof(galatea_tensor_info)`, set by the caller.
    size_t size;
    // Type of the elements, a `galatea_type`.
    int32_t value_type;
    // Number of axes.
    size_t rank;
    // Lengths of the axes; they belong to the tensor.
    const int64_t *lengths;
    // Number of elements.
    size_t elements;
    // Bytes of all elements; 0 for byte strings.
    size_t bytes;
} galatea_tensor_info;

// Settings of a search. Zeros stand for the usual values.
typedef struct galatea_tuning_options {
    // `sizeof(galatea_tuning_options)`.
    size_t size;
    // Strategy: "exhaustive", "grid", "adaptive" or "genetic"; null to choose by the number of candidates.
    const char *strategy;
    // Part of the name of a family of kernels; null for all.
    const char *family;
    // File to which the records are added; null to keep none. Models look at the usual file of `galatea tune`.
    const char *file;
    // The most candidates of a choice that are measured.
    size_t max_trials;
    // The most milliseconds for all choices together.
    uint64_t time_ms;
} galatea_tuning_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the sentence about the last call of this thread that failed; an empty one if none did.
//
// Ownership: the text belongs to the library and is valid until the next call of this thread fails or the thread ends.
const char *galatea_last_error(void);

// Returns the name of a status code, such as "invalid handle"; null for a number that is none.
//
// Ownership: the text belongs to the library and is always valid.
const char *galatea_status_name(int32_t status);

// Takes a buffer from the pool of an engine. Its contents are those of an earlier use, or zeros.
//
// Ownership: the buffer is the caller's, who gives it back with `galatea_buffer_free`.
galatea_status galatea_buffer_create(const struct galatea_engine *engine,
                                     size_t bytes,
                                     struct galatea_buffer **buffer);

// Gives the memory of a buffer, which begins at a multiple of 16 KiB. `bytes` may be null.
//
// Ownership: the memory belongs to the buffer and is valid until it is freed. It must not be written while a run reads
// a tensor of it.
galatea_status galatea_buffer_data(const struct galatea_buffer *buffer,
                                   void **data,
                                   size_t *bytes);

// Makes a tensor of the begin of a buffer, without a copy.
//
// Ownership: the tensor is the caller's, who frees it with `galatea_tensor_free`; it may outlive the buffer.
galatea_status galatea_buffer_tensor(const struct galatea_buffer *buffer,
                                     int32_t value_type,
                                     const int64_t *lengths,
                                     size_t rank,
                                     struct galatea_tensor **tensor);

// Gives a buffer back. Its memory goes to the pool when no tensor shares it any more.
galatea_status galatea_buffer_free(struct galatea_buffer *buffer);

// Tells the statistics of an engine's pool of buffers.
galatea_status galatea_pool_read(const struct galatea_engine *engine,
                                 struct galatea_pool_statistics *statistics);

// Limits the bytes that an engine's pool keeps, and gives back what is beyond. 0 keeps nothing.
galatea_status galatea_pool_limit(const struct galatea_engine *engine, size_t bytes);

// Tells what the machine and the library can do.
galatea_status galatea_engine_capabilities(const struct galatea_engine *engine,
                                           struct galatea_capabilities *capabilities);

// Lists the devices of the machine as a JSON array: class, name by which a model asks for it, name, and facts. What the
// machine does not tell is absent.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_engine_devices(const struct galatea_engine *engine,
                                      struct galatea_text **json);

// Loads an encoder from a folder of safetensors. `options` may be null.
//
// Ownership: the encoder is the caller's, who frees it with `galatea_encoder_free`.
galatea_status galatea_encoder_load(const struct galatea_engine *engine,
                                    const char *path,
                                    const struct galatea_llm_options *options,
                                    struct galatea_encoder **encoder);

// Tells the dimensions of a vector (0 for a model that scores pairs) and the most tokens of a text. Either place may
// be null.
galatea_status galatea_encoder_sizes(const struct galatea_encoder *encoder,
                                     size_t *dimensions,
                                     size_t *context);

// Computes the vector of each text, one behind the other. `vectors` has room for `capacity` floats, of which `count`
// texts need `count` times the dimensions.
galatea_status galatea_encoder_embed(const struct galatea_encoder *encoder,
                                     const char *const *texts,
                                     size_t count,
                                     float *vectors,
                                     size_t capacity);

// Scores how well each document answers a query. `scores` has room for `count` floats.
galatea_status galatea_encoder_rank(const struct galatea_encoder *encoder,
                                    const char *query,
                                    const char *const *documents,
                                    size_t count,
                                    float *scores);

// Frees an encoder. Calls under way end as usual.
galatea_status galatea_encoder_free(struct galatea_encoder *encoder);

// Makes an engine. Devices are opened when models need them. `options` may be null.
//
// Ownership: the engine is the caller's, who frees it with `galatea_engine_free`. Models, servers and what else was
// made with an engine stay valid when it is freed.
galatea_status galatea_engine_create(const struct galatea_engine_options *options,
                                     struct galatea_engine **engine);

// Frees an engine.
galatea_status galatea_engine_free(struct galatea_engine *engine);

// Loads a language model: a GGUF file, a folder of safetensors, or a folder of Core ML packages. `options` may be null.
//
// Ownership: the model is the caller's, who frees it with `galatea_llm_free`.
galatea_status galatea_llm_load(const struct galatea_engine *engine,
                                const char *path,
                                const struct galatea_llm_options *options,
                                struct galatea_llm **llm);

// Tells sizes of a language model and of its cache of keys and values, and what its engine has done, as JSON.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_llm_describe(const struct galatea_llm *llm, struct galatea_text **json);

// Divides a text into tokens. `count` tells how many there are, also where `tokens` has room for fewer
// (`GALATEA_STATUS_TOO_SMALL`); `tokens` may be null where `capacity` is 0.
galatea_status galatea_llm_tokenize(const struct galatea_llm *llm,
                                    const char *text,
                                    uint32_t *tokens,
                                    size_t capacity,
                                    size_t *count);

// Puts tokens together to a text, without special ones.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_llm_detokenize(const struct galatea_llm *llm,
                                      const uint32_t *tokens,
                                      size_t count,
                                      struct galatea_text **text);

// Continues a text and waits for the end. `options`, `callback`, `context`, `answer` and `usage` may be null.
//
// Ownership: the answer is the caller's, who frees it with `galatea_text_free`. A callback that cancels makes the call
// return `GALATEA_STATUS_CANCELLED`, without an answer.
galatea_status galatea_llm_generate(const struct galatea_llm *llm,
                                    const char *text,
                                    const struct galatea_generation_options *options,
                                    galatea_piece_callback callback,
                                    void *context,
                                    struct galatea_text **answer,
                                    struct galatea_token_usage *usage);

// Answers a conversation and waits for the end. `options`, `callback`, `context`, `answer` and `usage` may be null.
//
// Ownership: as of `galatea_llm_generate`. The answer is the content alone; reasoning and calls of tools go to the
// callback.
galatea_status galatea_llm_chat(const struct galatea_llm *llm,
                                const struct galatea_chat_message *messages,
                                size_t message_count,
                                const struct galatea_generation_options *options,
                                galatea_piece_callback callback,
                                void *context,
                                struct galatea_text **answer,
                                struct galatea_token_usage *usage);

// Begins to continue a text. `options` may be null.
//
// Ownership: the stream is the caller's, who frees it with `galatea_stream_free`.
galatea_status galatea_llm_stream_generate(const struct galatea_llm *llm,
                                           const char *text,
                                           const struct galatea_generation_options *options,
                                           struct galatea_stream **stream);

// Begins to answer a conversation. `options` may be null.
//
// Ownership: the stream is the caller's, who frees it with `galatea_stream_free`.
galatea_status galatea_llm_stream_chat(const struct galatea_llm *llm,
                                       const struct galatea_chat_message *messages,
                                       size_t message_count,
                                       const struct galatea_generation_options *options,
                                       struct galatea_stream **stream);

// Waits for the next piece of an answer. `GALATEA_STATUS_END` says that there is no more. `kind` may be null.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_stream_next(const struct galatea_stream *stream,
                                   int32_t *kind,
                                   struct galatea_text **text);

// Tells the counts of an answer that has ended.
galatea_status galatea_stream_usage(const struct galatea_stream *stream, struct galatea_token_usage *usage);

// Cancels an answer, from any thread. Who waits in `galatea_stream_next` gets what is there and then the end.
galatea_status galatea_stream_cancel(const struct galatea_stream *stream);

// Frees a stream, which cancels its answer.
galatea_status galatea_stream_free(struct galatea_stream *stream);

// Frees a language model. Its weights stay until answers under way have ended.
galatea_status galatea_llm_free(struct galatea_llm *llm);

// Tells the memory that a model holds, as JSON: weights in memory, weights in mapped files, and arenas.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_model_memory(const struct galatea_model *model, struct galatea_text **json);

// Tells the memory of the GPUs that an engine has opened, as a JSON array: bytes by what they are, and the buffers of
// each size that are in use and that are kept.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_engine_gpu_memory(const struct galatea_engine *engine,
                                         struct galatea_text **json);

// Loads a model: an ONNX file, a Core ML package, or a folder with one of them. `options` may be null.
//
// Ownership: the model is the caller's, who frees it with `galatea_model_free`.
galatea_status galatea_model_load(const struct galatea_engine *engine,
                                  const char *path,
                                  const struct galatea_model_options *options,
                                  struct galatea_model **model);

// Counts the inputs and outputs of a model. Either place may be null.
galatea_status galatea_model_counts(const struct galatea_model *model, size_t *inputs, size_t *outputs);

// Describes an input of a model, numbered from 0.
//
// Ownership: name and lengths belong to the model and are valid until it is freed.
galatea_status galatea_model_input(const struct galatea_model *model,
                                   size_t index,
                                   struct galatea_value_info *info);

// Describes an output of a model, numbered from 0 in the order in which runs give them.
//
// Ownership: name and lengths belong to the model and are valid until it is freed.
galatea_status galatea_model_output(const struct galatea_model *model,
                                    size_t index,
                                    struct galatea_value_info *info);

// Names the devices that run the parts of a model, such as "cpu" or "cpu,gpu".
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_model_devices(const struct galatea_model *model, struct galatea_text **devices);

// Runs a model on named tensors and waits for its outputs, in the order of `galatea_model_output`. `outputs` has room
// for `capacity` handles; `count` tells how many there are.
//
// Ownership: the inputs stay the caller's and may be freed or used again at once. The outputs are the caller's, who
// frees each with `galatea_tensor_free`. Where the call fails there is none.
galatea_status galatea_model_run(const struct galatea_model *model,
                                 const struct galatea_named_tensor *inputs,
                                 size_t input_count,
                                 struct galatea_tensor **outputs,
                                 size_t capacity,
                                 size_t *count);

// Frees a model. Runs under way end as usual.
galatea_status galatea_model_free(struct galatea_model *model);

// Starts to watch all runs of an engine's models. One profile of an engine is under way at a time. `options` may be
// null.
galatea_status galatea_monitor_start(const struct galatea_engine *engine,
                                     const struct galatea_monitor_options *options);

// Tells what the profile under way adds up to so far, as JSON: devices, models and operators with their times.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_monitor_metrics(const struct galatea_engine *engine,
                                       struct galatea_text **json);

// Lists the operators of the profile under way that take most of the time, as a JSON array: model, operator, kernel,
// device, share of the model's time, and what bounds the kernel (compute, memory, launch) where that is known.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_monitor_bottlenecks(const struct galatea_engine *engine,
                                           size_t limit,
                                           struct galatea_text **json);

// Ends the profile. `summary` gets what it adds up to, as JSON. `trace` gets its events in Chrome's format, or null
// where they are in a file; it may be null itself.
//
// Ownership: the texts are the caller's, who frees them with `galatea_text_free`.
galatea_status galatea_monitor_stop(const struct galatea_engine *engine,
                                    struct galatea_text **summary,
                                    struct galatea_text **trace);

// Compares two models on the same inputs (an A/B test): both run in turn, and the times are compared statistically.
// `options` may be null.
galatea_status galatea_compare_models(const struct galatea_model *first,
                                      const struct galatea_model *second,
                                      const struct galatea_named_tensor *inputs,
                                      size_t input_count,
                                      const struct galatea_comparison_options *options,
                                      struct galatea_comparison *result);

// Multiplies matrices of FP32: `alpha * A * B + beta * C`. `options`, `c` and `unit` may be null. `unit` tells the
// device that computes, a `galatea_unit`. The first call with new shapes prepares what later ones use.
//
// Ownership: the inputs stay the caller's. The result is the caller's, who frees it with `galatea_tensor_free`.
galatea_status galatea_gemm(const struct galatea_engine *engine,
                            const struct galatea_gemm_options *options,
                            const struct galatea_tensor *a,
                            const struct galatea_tensor *b,
                            const struct galatea_tensor *c,
                            struct galatea_tensor **result,
                            int32_t *unit);

// Convolves images `[N, C, H, W]` of FP32 with weights `[M, C/groups, h, w]` and adds a bias `[M]`. `options`, `bias`
// and `unit` may be null, as in `galatea_gemm`.
//
// Ownership: as of `galatea_gemm`.
galatea_status galatea_convolution(const struct galatea_engine *engine,
                                   const struct galatea_convolution_options *options,
                                   const struct galatea_tensor *images,
                                   const struct galatea_tensor *weights,
                                   const struct galatea_tensor *bias,
                                   struct galatea_tensor **result,
                                   int32_t *unit);

// Gives the bytes of a text, which end with a zero byte that `length` does not count. `length` may be null.
//
// Ownership: the bytes belong to the text and are valid until it is freed.
galatea_status galatea_text_data(const struct galatea_text *text, const char **data, size_t *length);

// Frees a text.
galatea_status galatea_text_free(struct galatea_text *text);

// Holds a target of power from now on, and measures. Calling it again replaces the settings; they hold for the models
// of the engine that run already, too. `options` may be null. Where the machine has no sensors, nothing is held, and
// `galatea_power_read` says that nothing is measured.
galatea_status galatea_power_start(const struct galatea_engine *engine,
                                   const struct galatea_power_options *options);

// Ends holding and measuring. Work runs at its full pace.
galatea_status galatea_power_stop(const struct galatea_engine *engine);

// Tells the latest measurements. Sensors are read about once a second while `galatea_power_start` or a server of the
// engine watches.
galatea_status galatea_power_read(const struct galatea_engine *engine,
                                  struct galatea_power_metrics *metrics);

// Registers memory, such as a mapped file, and hints how it is going to be read. `pattern` is a
// `galatea_access`. Hints bring parts of files to memory; memory that is no file is near already.
//
// Ownership: the memory stays the caller's and must be mapped until the region is freed with `galatea_region_free`. Its
// contents are neither read nor changed.
galatea_status galatea_region_register(const void *data,
                                       size_t bytes,
                                       int32_t pattern,
                                       struct galatea_region **region);

// Hints that a part of a region is read soon.
galatea_status galatea_region_prefetch(const struct galatea_region *region, size_t offset, size_t bytes);

// Tells of an access to a region. An adaptive region brings what comes next by equal steps, farther ahead the more
// often it was right.
galatea_status galatea_region_access(const struct galatea_region *region,
                                     size_t offset,
                                     size_t bytes);

// Tells the statistics of a region.
galatea_status galatea_region_read(const struct galatea_region *region,
                                   struct galatea_region_statistics *statistics);

// Frees a region. Its memory is read as usual again.
galatea_status galatea_region_free(struct galatea_region *region);

// Serves a model repository: loads its models and opens the front ends that are asked for, on the loopback interface.
// `options` may be null.
//
// Ownership: the server is the caller's, who ends it with `galatea_server_stop`.
galatea_status galatea_server_start(const struct galatea_engine *engine,
                                    const char *repository,
                                    const struct galatea_server_options *options,
                                    struct galatea_server **server);

// Tells the address of a front end, such as "127.0.0.1:8000". `front_end` is a `galatea_front_end`.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_server_address(const struct galatea_server *server,
                                      int32_t front_end,
                                      struct galatea_text **address);

// Runs a model of a server, through its queue and its batcher. Outputs are as those of `galatea_model_run`; where
// `capacity` is too small none is returned and `count` tells how many the model gave.
//
// Ownership: as of `galatea_model_run`.
galatea_status galatea_server_infer(const struct galatea_server *server,
                                    const char *model,
                                    const struct galatea_named_tensor *inputs,
                                    size_t input_count,
                                    struct galatea_tensor **outputs,
                                    size_t capacity,
                                    size_t *count);

// Closes the front ends, lets requests under way finish for so long, and frees the server. `unanswered` tells how many
// requests had no answer then; it may be null. Calls of other threads with the server have that time to end, too.
galatea_status galatea_server_stop(struct galatea_server *server,
                                   uint64_t timeout_ms,
                                   size_t *unanswered);

// Makes a tensor of a copy of bytes. `bytes` must be those that the shape needs.
//
// Ownership: the tensor is the caller's, who frees it with `galatea_tensor_free`.
galatea_status galatea_tensor_create(int32_t value_type,
                                     const int64_t *lengths,
                                     size_t rank,
                                     const void *data,
                                     size_t bytes,
                                     struct galatea_tensor **tensor);

// Makes a tensor of the caller's memory without a copy. Bytes that are not aligned for their type are copied.
//
// Ownership: the memory stays the caller's. It must not change until `release` is called with `context`, once and on
// any thread; a copied memory is given back before the call returns. `release` may be null for memory that outlives
// the tensor and every run that uses it. Where the call fails, `release` is not called. The tensor is the caller's, who
// frees it with `galatea_tensor_free`.
galatea_status galatea_tensor_wrap(int32_t value_type,
                                   const int64_t *lengths,
                                   size_t rank,
                                   const void *data,
                                   size_t bytes,
                                   galatea_release release,
                                   void *context,
                                   struct galatea_tensor **tensor);

// Makes a tensor of byte strings. `sizes` may be null where each text ends with a zero byte.
//
// Ownership: the texts are copied. The tensor is the caller's, who frees it with `galatea_tensor_free`.
galatea_status galatea_tensor_create_strings(const int64_t *lengths,
                                             size_t rank,
                                             const char *const *texts,
                                             const size_t *sizes,
                                             size_t count,
                                             struct galatea_tensor **tensor);

// Tells type and shape of a tensor.
//
// Ownership: `lengths` belongs to the tensor and is valid until it is freed.
galatea_status galatea_tensor_describe(const struct galatea_tensor *tensor, struct galatea_tensor_info *info);

// Gives the elements of a tensor, row after row, without a copy. Byte strings are read by `galatea_tensor_string`.
//
// Ownership: the bytes belong to the tensor, must not be changed, and are valid until it is freed.
galatea_status galatea_tensor_data(const struct galatea_tensor *tensor,
                                   const void **data,
                                   size_t *bytes);

// Copies the elements of a tensor to memory of the caller.
galatea_status galatea_tensor_copy(const struct galatea_tensor *tensor, void *data, size_t capacity_bytes);

// Gives one byte string of a tensor. It does not end with a zero byte.
//
// Ownership: the bytes belong to the tensor and are valid until it is freed.
galatea_status galatea_tensor_string(const struct galatea_tensor *tensor,
                                     size_t index,
                                     const char **data,
                                     size_t *length);

// Frees a tensor. Runs that use it go on.
galatea_status galatea_tensor_free(struct galatea_tensor *tensor);

// Lists the choices between kernels that a model has for inputs of these shapes, as a JSON array: node, family, bucket
// of lengths, and the names of the candidates, the default first.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_tuning_space(const struct galatea_model *model,
                                    const struct galatea_named_tensor *inputs,
                                    size_t input_count,
                                    struct galatea_text **json);

// Measures the choices between kernels of a model for inputs of these shapes, within the limits. `json` gets an array
// with the fastest candidate of each choice and its times. `options` may be null.
//
// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
galatea_status galatea_tuning_run(const struct galatea_model *model,
                                  const struct galatea_named_tensor *inputs,
                                  size_t input_count,
                                  const struct galatea_tuning_options *options,
                                  struct galatea_text **json);

// Returns the bytes of one element of a type; 0 for byte strings and for numbers that are no type.
size_t galatea_type_size(int32_t value_type);

// Returns the version of the interface that the library has; `GALATEA_ABI_VERSION` is that of the header.
uint32_t galatea_abi_version(void);

// Checks that a program which was compiled with `GALATEA_ABI_VERSION` of its header may use this library.
galatea_status galatea_require_abi(uint32_t version);

// Returns the version of the library, such as "0.1.0".
//
// Ownership: the text belongs to the library and is always valid.
const char *galatea_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GALATEA_H */
