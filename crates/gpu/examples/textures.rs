//! Times kernels that read images from textures beside the same kernels that read them from buffers: one JSON line
//! each.
//!
//! `textures [SIDE]`, on the first device: an image of four channels that doubles its sides by linear interpolation,
//! and windows of 3 × 3 pixels of it. Values between kernels lie in buffers, so that a texture is filled by a copy
//! first, which is a line of its own.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

use std::time::Instant;

use wgpu::{BufferUsages, Features, TextureFormat, TextureUsages};

/// Dispatches of a measurement, and measurements of which the fastest counts.
const DISPATCHES: u32 = 100;
const RUNS: usize = 7;

/// Place that a kernel reads an image from.
#[derive(Clone, Copy, PartialEq)]
enum ImageSource {
    Buffer,
    /// Pixel by pixel.
    Loaded,
    /// By the sampler, which interpolates.
    Sampled,
}

/// A kernel and the form of its image.
struct Measured {
    kernel: &'static str,
    source: ImageSource,
    half: bool,
}

impl Measured {
    fn text(&self, side: u32) -> String {
        let float = if self.half { "f16" } else { "f32" };
        let enable =
            if self.half && self.source == ImageSource::Buffer { "enable f16;\n" } else { "" };
        let image = match self.source {
            ImageSource::Buffer => {
                format!("@group(0) @binding(0) var<storage, read> image: array<vec4<{float}>>;\n")
            }
            _ => "@group(0) @binding(0) var image: texture_2d<f32>;\n".to_owned(),
        };
        let sampler = match self.source {
            ImageSource::Sampled => "@group(0) @binding(2) var linear: sampler;\n",
            _ => "",
        };
        let pixel = match self.source {
            ImageSource::Buffer => format!("vec4<f32>(image[u32(y) * {side}u + u32(x)])"),
            _ => "textureLoad(image, vec2<i32>(x, y), 0)".to_owned(),
        };
        let last = side - 1;
        let read = format!(
            "fn pixel(at_x: i32, at_y: i32) -> vec4<f32> {{\nlet x = clamp(at_x, 0, {last});\nlet y = clamp(at_y, 0, {last});\nreturn {pixel};\n}}\n"
        );
        let read = if self.source == ImageSource::Sampled { String::new() } else { read };
        let (out, body) = match (self.kernel, self.source) {
            ("resize", ImageSource::Sampled) => (
                2 * side,
                format!("let v = textureSampleLevel(image, linear, (vec2<f32>(at) + 0.5) / {}.0, 0.0);", 2 * side),
            ),
            ("resize", _) => (
                2 * side,
                "let from_x = (f32(at.x) + 0.5) * 0.5 - 0.5;\nlet from_y = (f32(at.y) + 0.5) * 0.5 - 0.5;\n\
                 let x = i32(floor(from_x));\nlet y = i32(floor(from_y));\n\
                 let v = mix(mix(pixel(x, y), pixel(x + 1, y), fract(from_x)), mix(pixel(x, y + 1), pixel(x + 1, y + 1), fract(from_x)), fract(from_y));"
                    .to_owned(),
            ),
            _ => (
                side,
                "var v = vec4<f32>();\nfor (var j = -1; j <= 1; j++) {\nfor (var i = -1; i <= 1; i++) {\n\
                 v += pixel(i32(at.x) + i, i32(at.y) + j) * f32(3 * j + i + 5);\n}\n}"
                    .to_owned(),
            ),
        };
        format!(
            "{enable}{image}@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;\n{sampler}{read}\
             @compute @workgroup_size(16, 16)\nfn main(@builtin(global_invocation_id) at3: vec3<u32>) {{\n\
             let at = at3.xy;\nif at.x >= {out}u || at.y >= {out}u {{ return; }}\n{body}\nresult[at.y * {out}u + at.x] = v;\n}}\n"
        )
    }
}

/// A device with an image of its own in each form.
struct ImageDevice {
    device: wgpu::Device,
    queue: wgpu::Queue,
    side: u32,
    image: wgpu::Buffer,
    result: wgpu::Buffer,
}

impl ImageDevice {
    fn open(side: u32) -> (Self, String) {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::METAL | wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(descriptor);
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let adapter = adapters.into_iter().next().expect("a device");
        let wanted = Features::SHADER_F16 | Features::FLOAT32_FILTERABLE;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: adapter.features() & wanted,
            required_limits: adapter.limits(),
            ..Default::default()
        }))
        .expect("a device");
        let buffer = |bytes: u32, usage: BufferUsages| {
            let size = u64::from(bytes);
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage,
                mapped_at_creation: false,
            })
        };
        let pixels = side * side * 16;
        let image = buffer(pixels, BufferUsages::STORAGE | BufferUsages::COPY_SRC);
        let result = buffer(4 * pixels, BufferUsages::STORAGE);
        (Self { device, queue, side, image, result }, adapter.get_info().name)
    }

    fn texture(&self, half: bool) -> wgpu::Texture {
        let format = if half { TextureFormat::Rgba16Float } else { TextureFormat::Rgba32Float };
        self.device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: self.extent(),
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: TextureUsages::TEXTURE_BINDING | TextureUsages::COPY_DST,
            view_formats: &[],
        })
    }

    fn extent(&self) -> wgpu::Extent3d {
        wgpu::Extent3d { width: self.side, height: self.side, depth_or_array_layers: 1 }
    }

    /// Microseconds of one of the commands that are encoded together.
    fn timed(&self, encode: impl Fn(&mut wgpu::CommandEncoder)) -> f64 {
        let once = || {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            encode(&mut encoder);
            let begin = Instant::now();
            self.queue.submit([encoder.finish()]);
            self.device.poll(wgpu::PollType::wait_indefinitely()).expect("an end");
            begin.elapsed().as_secs_f64() * 1e6 / f64::from(DISPATCHES)
        };
        once();
        (0..RUNS).map(|_| once()).fold(f64::MAX, f64::min)
    }

    fn copied(&self, half: bool) -> f64 {
        let texture = self.texture(half);
        self.timed(|encoder| {
            for _ in 0..DISPATCHES {
                encoder.copy_buffer_to_texture(
                    wgpu::TexelCopyBufferInfo {
                        buffer: &self.image,
                        layout: wgpu::TexelCopyBufferLayout {
                            offset: 0,
                            bytes_per_row: Some(self.side * if half { 8 } else { 16 }),
                            rows_per_image: None,
                        },
                    },
                    texture.as_image_copy(),
                    self.extent(),
                );
            }
        })
    }

    fn measured(&self, of: &Measured) -> f64 {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(of.text(self.side).into()),
        });
        let sampled = of.source == ImageSource::Sampled;
        let view = self.texture(of.half).create_view(&Default::default());
        let sampler = self.device.create_sampler(&wgpu::SamplerDescriptor {
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..Default::default()
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let image = match of.source {
            ImageSource::Buffer => self.image.as_entire_binding(),
            _ => wgpu::BindingResource::TextureView(&view),
        };
        let mut entries = vec![
            wgpu::BindGroupEntry { binding: 0, resource: image },
            wgpu::BindGroupEntry { binding: 1, resource: self.result.as_entire_binding() },
        ];
        if sampled {
            let resource = wgpu::BindingResource::Sampler(&sampler);
            entries.push(wgpu::BindGroupEntry { binding: 2, resource });
        }
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let out = if of.kernel == "resize" { 2 * self.side } else { self.side };
        self.timed(|encoder| {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            for _ in 0..DISPATCHES {
                pass.dispatch_workgroups(out.div_ceil(16), out.div_ceil(16), 1);
            }
        })
    }
}

fn main() {
    let side = std::env::args().nth(1).map_or(1024, |text| text.parse().expect("a number"));
    let (device, name) = ImageDevice::open(side);
    let halves = device.device.features().contains(Features::SHADER_F16);
    let line = |kernel: &str, source: &str, half: bool, us: f64| {
        let form = if half { "FP16" } else { "FP32" };
        println!(
            "{{\"device\":\"{name}\",\"side\":{side},\"kernel\":\"{kernel}\",\"source\":\"{source}\",\"form\":\"{form}\",\"us\":{us:.1}}}"
        );
    };
    for half in [false, true] {
        line("copy", "buffer to texture", half, device.copied(half));
        for kernel in ["resize", "window"] {
            let sources = [
                (ImageSource::Buffer, "buffer"),
                (ImageSource::Loaded, "texture, loaded"),
                (ImageSource::Sampled, "texture, sampled"),
            ];
            for (source, text) in sources {
                let filtered = source == ImageSource::Sampled && (kernel != "resize" || !half);
                if filtered || half && source == ImageSource::Buffer && !halves {
                    continue;
                }
                line(kernel, text, half, device.measured(&Measured { kernel, source, half }));
            }
        }
    }
}
