#include "native/backends/litert_lm/accelerator.h"

#include <dlfcn.h>

#include <string_view>

#if defined(__ANDROID__)
#include <sys/system_properties.h>
#endif

#include "native/base/environment.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/text/quote.h"

namespace eliza::litert_lm {
namespace {

// The vendors whose NPUs LiteRT-LM serves, in the order they are tried in: no phone has two.
struct Vendor {
  const char* name;
  std::vector<std::string_view> manufacturers;  // as Android's ro.soc.manufacturer has it
  std::string dispatch_library;
};

const std::vector<Vendor>& vendors() {
  static const std::vector<Vendor>& list = *new std::vector<Vendor>{
      {"Google Tensor", {"Google"}, "libLiteRtDispatch_GoogleTensor.so"},
      {"Qualcomm", {"QTI", "Qualcomm"}, "libLiteRtDispatch_Qualcomm.so"},
      {"MediaTek", {"Mediatek", "MediaTek"}, "libLiteRtDispatch_MediaTek.so"},
  };
  return list;
}

const Vendor* vendor_of(const Host& host) {
  for (const Vendor& vendor : vendors()) {
    for (const std::string_view manufacturer : vendor.manufacturers) {
      if (host.soc_manufacturer == manufacturer) return &vendor;
    }
  }
  return nullptr;
}

// The loader library of a GPU's driver: where none opens there is nothing to run on.
std::vector<std::string> gpu_loaders(const Host& host) {
  if (host.android) return {"libOpenCL.so", "libOpenCL-pixel.so", "libvulkan.so"};
#if defined(__APPLE__)
  return {"/System/Library/Frameworks/Metal.framework/Metal"};
#else
  return {"libvulkan.so.1"};
#endif
}

Rung npu_rung(const Host& host, const std::vector<std::string>& directories) {
  Rung rung;
  rung.accelerator = Accelerator::kNpu;
  const Vendor* const vendor = vendor_of(host);
  if (vendor == nullptr) {
    rung.why = host.soc_manufacturer.empty()
                   ? "no NPU: this system names no SoC"
                   : "no NPU: the SoC is " + host.soc_manufacturer + " " + host.soc_model +
                         ", and LiteRT-LM serves those of Google Tensor, Qualcomm and MediaTek";
    return rung;
  }
  for (const std::string& directory : directories) {
    if (host.open(directory + "/" + vendor->dispatch_library).empty()) continue;
    rung.dispatch_dir = directory;
    rung.present = true;
    break;
  }
  if (!rung.present) {
    const std::string file = host.open(vendor->dispatch_library);
    const size_t slash = file.rfind('/');
    if (slash != std::string::npos) rung.dispatch_dir = file.substr(0, slash);
    rung.present = !file.empty();
  }
  if (rung.present) {
    rung.soc = host.soc_model;
    rung.device = "npu (" + std::string(vendor->name) + " " + host.soc_model + ")";
  } else {
    rung.why = "no NPU: " + std::string(vendor->name) + "'s dispatch library " + vendor->dispatch_library +
               " is not there (looked for in " + joined(directories) + " and on the loader's path)";
  }
  return rung;
}

Rung gpu_rung(const Host& host) {
  Rung rung;
  rung.accelerator = Accelerator::kGpu;
  rung.device = "gpu";
  const std::vector<std::string> loaders = gpu_loaders(host);
  for (const std::string& loader : loaders) rung.present = rung.present || !host.open(loader).empty();
  if (!rung.present) rung.why = "no GPU: none of its driver's libraries opens (" + joined(loaders) + ")";
  return rung;
}

Rung cpu_rung() {
  Rung rung;
  rung.accelerator = Accelerator::kCpu;
  rung.device = "cpu";
  rung.present = true;
  return rung;
}

bool is_for_another_soc(const ModelHeader& model, const Rung& rung) {
  return rung.accelerator == Accelerator::kNpu && !model.soc.empty() && !same_soc(model.soc, rung.soc);
}

// Why the model cannot run there; empty where it can.
std::string misfit(const ModelHeader& model, const Rung& rung) {
  if (!rung.present) return rung.why;
  const std::string name = accelerator_name(rung.accelerator);
  if (!model.runs_on(name)) return "the model is not made for the " + name;
  if (is_for_another_soc(model, rung)) return "the model is compiled for another SoC than " + rung.soc;
  return {};
}

// Opens it and leaves it open: what is found is used next, and drivers do not like to be unloaded.
std::string open_on_this_host(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {};
  void* const symbol = dlsym(handle, "LiteRtDispatchGetApi");
  Dl_info info{};
  if (symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fname != nullptr) return info.dli_fname;
  return library;
}

#if defined(__ANDROID__)
std::string system_property(const char* name) {
  char value[PROP_VALUE_MAX] = {};
  __system_property_get(name, value);
  return value;
}
#endif

}  // namespace

const char* accelerator_name(Accelerator accelerator) {
  switch (accelerator) {
    case Accelerator::kNpu:
      return "npu";
    case Accelerator::kGpu:
      return "gpu";
    case Accelerator::kCpu:
      return "cpu";
  }
  return "";
}

int accelerator_rank(Accelerator accelerator) {
  switch (accelerator) {
    case Accelerator::kNpu:
      return 100;
    case Accelerator::kGpu:
      return 20;
    case Accelerator::kCpu:
      return -1;
  }
  return -1;
}

bool same_soc(const std::string& a, const std::string& b) { return squashed(a) == squashed(b); }

Host this_host() {
  Host host;
  host.open = open_on_this_host;
#if defined(__ANDROID__)
  host.android = true;
  host.soc_manufacturer = system_property("ro.soc.manufacturer");
  host.soc_model = system_property("ro.soc.model");
#endif
  return host;
}

std::vector<Rung> ladder(const std::string& setting, const Host& host, const std::vector<std::string>& directories) {
  const bool automatic = setting.empty() || setting == "auto";
  if (!automatic && setting != "npu" && setting != "gpu" && setting != "cpu") {
    throw Error(ELIZA_ERR_INVALID_ARG,
                "ELIZA_LITERT_ACCELERATOR is '" + setting + "'; set it to auto, npu, gpu or cpu, or unset it");
  }
  std::vector<Rung> rungs;
  if (automatic && !host.android) return rungs;
  if (automatic || setting == "npu") rungs.push_back(npu_rung(host, directories));
  if (automatic || setting == "gpu") rungs.push_back(gpu_rung(host));
  if (automatic || setting == "cpu") rungs.push_back(cpu_rung());
  return rungs;
}

std::vector<Rung> host_ladder(const Library* library) {
  std::vector<std::string> directories;
  const size_t slash = library == nullptr ? std::string::npos : library->path.rfind('/');
  if (slash != std::string::npos) directories.push_back(library->path.substr(0, slash));
  return ladder(variable("ELIZA_LITERT_ACCELERATOR"), this_host(), directories);
}

std::string no_accelerator(const std::vector<Rung>& rungs) {
  if (rungs.empty()) {
    return "on this system it uses no accelerator by itself; ELIZA_LITERT_ACCELERATOR=cpu lets it run on the CPU, gpu "
           "on the GPU";
  }
  std::string why;
  for (const Rung& rung : rungs) why += (why.empty() ? "" : "; ") + rung.why;
  return why + "; ELIZA_LITERT_ACCELERATOR=cpu lets it run on the CPU";
}

Placement place(const ModelHeader& model, const std::vector<Rung>& rungs) {
  std::string present;
  for (const Rung& rung : rungs) {
    if (!rung.present) continue;
    present += (present.empty() ? "" : ", ") + rung.device;
    if (!model.runs_on(accelerator_name(rung.accelerator))) continue;
    if (is_for_another_soc(model, rung)) {
      present += ", for another SoC than the model's " + shown(model.soc);
      continue;
    }
    return {rung, {}};
  }
  return {std::nullopt,
          "the model is made for " + shown(joined(model.backends)) + ", and what may be used here is " + present};
}

std::string passed_over(const ModelHeader& model, const std::vector<Rung>& rungs) {
  std::string why;
  for (const Rung& rung : rungs) {
    const std::string problem = misfit(model, rung);
    if (problem.empty()) return why.empty() ? why : "on the " + rung.device + ", since: " + why;
    why += (why.empty() ? "" : "; ") + problem;
  }
  return {};
}

}  // namespace eliza::litert_lm
