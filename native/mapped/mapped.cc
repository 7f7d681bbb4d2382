// What JavaScript calls for files mapped into memory. See README.md for why and how fast.
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "../bus.h"
#include "../calls.h"
#include "../file-places.h"
#include "../resident.h"
#include "mapping.h"
#include "small-files.h"

namespace {

using mapping::kPathMax;
using mapping::Mapping;
using mapping::Range;
using mapping::Use;

// ArrayBuffers of one GiB at most: some supported versions of V8 allow no more than 4 GiB in one.
constexpr size_t kWindow = size_t{1} << 30;

// What JavaScript holds. `mapping` is null once closed.
struct Handle {
  Mapping* mapping;
};

void finalizeHandle(napi_env, void* data, void*) {
  Handle* handle = static_cast<Handle*>(data);
  Externals<Handle>::forget(handle);
  if (handle->mapping != nullptr) mapping::release(handle->mapping);
  delete handle;
}

void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

napi_value openAs(napi_env env, napi_callback_info info, const char* name, Use use) {
  Arguments arguments(env, info, name);
  std::string path = arguments.text(0, kPathMax);
  if (!arguments.good) return nullptr;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? nullptr : fail(env, "open", errno);
  struct stat found;
  int code = fstat(fd, &found) != 0 ? errno : S_ISREG(found.st_mode) ? 0 : EISDIR;
  if (code != 0) {
    ::close(fd);
    return fail(env, "open", code);
  }
  Mapping* mapping = mapping::of(fd, found, use);
  if (mapping == nullptr) return fail(env, "mmap", errno);

  Handle* handle = new Handle{mapping};
  napi_value result, external, number;
  napi_create_object(env, &result);
  external = Externals<Handle>::make(env, handle, finalizeHandle);
  set(env, result, "handle", external);
  napi_create_double(env, static_cast<double>(found.st_size), &number);
  set(env, result, "sizeBytes", number);
  napi_create_bigint_uint64(env, found.st_ino, &number);
  set(env, result, "inode", number);
  napi_create_bigint_int64(env, mapping::modifiedNs(found), &number);
  set(env, result, "modifiedNs", number);
  return result;
}

// open(path) -> { handle, sizeBytes, inode, modifiedNs }, or undefined where there is no such file.
napi_value open(napi_env env, napi_callback_info info) { return openAs(env, info, "open", Use::kWhole); }

// openWritten(path): the same for a file whose bytes are still being written, and whose size stays.
napi_value openWritten(napi_env env, napi_callback_info info) { return openAs(env, info, "openWritten", Use::kWritten); }

// openScattered(path): the same for a file of which small places far apart are read.
napi_value openScattered(napi_env env, napi_callback_info info) {
  return openAs(env, info, "openScattered", Use::kScattered);
}

// The mapping of the first argument. Throws and returns null where that is no handle, or a closed one.
Mapping* mappingOf(napi_env env, Arguments& arguments) {
  Handle* handle = arguments.external<Handle>(0);
  if (handle == nullptr) return nullptr;
  if (handle->mapping == nullptr) {
    arguments.good = false;
    fail(env, "the mapped file is closed", EBADF);
  }
  return handle->mapping;
}

// The second and third argument: bytes of the mapping from `start` up to `end`. They must lie within it.
Range rangeOf(const Mapping* mapping, Arguments& arguments) {
  size_t end = static_cast<size_t>(arguments.integer(2, 0, mapping->size));
  size_t start = static_cast<size_t>(arguments.integer(1, 0, end));
  return arguments.good ? mapping::pagesAround(mapping, start, end) : Range{nullptr, 0};
}

void finalizeWindow(napi_env, void*, void* hint) { mapping::release(static_cast<Mapping*>(hint)); }

// window(handle, index) -> ArrayBuffer over the index-th GiB of the file.
napi_value window(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "window");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  if (mapping->size == 0) return fail(env, "window", ERANGE);
  size_t start = static_cast<size_t>(arguments.integer(1, 0, (mapping->size - 1) / kWindow)) * kWindow;
  if (!arguments.good) return nullptr;
  size_t length = mapping->size - start < kWindow ? mapping->size - start : kWindow;
  mapping::hold(mapping);
  napi_value buffer;
  if (napi_create_external_arraybuffer(env, mapping->start + start, length, finalizeWindow, mapping, &buffer) !=
      napi_ok) {
    mapping::release(mapping);
    return fail(env, "external array buffers are not supported", ENOTSUP);
  }
  return buffer;
}

// isResident(handle, start, end, fill) -> true where the bytes are in memory; with `fill` their page tables are then filled
// too, so that reading them faults no more. Never waits for the disk.
napi_value isResident(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "isResident");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  Range range = rangeOf(mapping, arguments);
  bool fill = arguments.truth(3);
  if (!arguments.good) return nullptr;
  bool here = resident::isIn(range.start, range.length) && (!fill || mapping::populate(range, true) == 0);
  napi_value result;
  napi_get_boolean(env, here, &result);
  return result;
}

// ahead(handle, ranges): begins to read the bytes from ranges[0] to ranges[1], from ranges[2] to ranges[3] and so on (bytes of
// doubles), all at once, and does not wait for them. What lies outside of the file is left out.
napi_value ahead(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "ahead");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  Bytes ranges = arguments.bytes(1);
  if (!arguments.good) return nullptr;
  const double* numbers = reinterpret_cast<const double*>(ranges.data);
  double size = static_cast<double>(mapping->size);
  for (size_t at = 0; at + 1 < ranges.length / sizeof(double); at += 2) {
    double start = numbers[at], end = numbers[at + 1] < size ? numbers[at + 1] : size;
    if (!(start >= 0 && start < end)) continue;
    size_t first = static_cast<size_t>(start);
    resident::bringIn(mapping->start + first, static_cast<size_t>(end) - first);
  }
  return nullptr;
}

// readThrough(handle): all of a scattered file is read soon, from its beginning to its end: the disk reads ahead.
napi_value readThrough(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readThrough");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping != nullptr) mapping::readThrough(mapping);
  return nullptr;
}

struct Fetch {
  Mapping* mapping;
  Range range;
  int failed;
  napi_async_work work;
  napi_deferred deferred;
};

void runFetch(napi_env, void* data) {
  Fetch* fetch = static_cast<Fetch*>(data);
  fetch->failed = mapping::populate(fetch->range, false);
}

void endFetch(napi_env env, napi_status status, void* data) {
  Fetch* fetch = static_cast<Fetch*>(data);
  napi_value result;
  napi_get_boolean(env, status == napi_ok && fetch->failed == 0, &result);
  napi_resolve_deferred(env, fetch->deferred, result);
  napi_delete_async_work(env, fetch->work);
  mapping::release(fetch->mapping);
  delete fetch;
}

// fetch(handle, start, end) -> promise of true once the bytes are in memory and mapped, of false where the disk failed.
napi_value fetch(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "fetch");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  Range range = rangeOf(mapping, arguments);
  if (!arguments.good) return nullptr;
  mapping::hold(mapping);
  Fetch* made = new Fetch{mapping, range, 0, nullptr, nullptr};
  napi_value promise, name;
  napi_create_promise(env, &made->deferred, &promise);
  napi_create_string_utf8(env, "mapped.fetch", NAPI_AUTO_LENGTH, &name);
  napi_create_async_work(env, nullptr, name, runFetch, endFetch, made, &made->work);
  napi_queue_async_work(env, made->work);
  return promise;
}

// copy(handle, start, target) -> true where the bytes from `start` on were copied into all of `target`, false where they
// cannot be read: the file was truncated, or the disk fails. Waits for the disk where they are not in memory.
napi_value copy(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "copy");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  size_t start = static_cast<size_t>(arguments.integer(1, 0, mapping->size));
  Bytes target = arguments.bytes(2);
  if (arguments.good && target.length > mapping->size - start) arguments.wrong(2, "reaches beyond the file", true);
  if (!arguments.good) return nullptr;
  napi_value result;
  napi_get_boolean(env, bus::copied(reinterpret_cast<char*>(target.data), mapping->start + start, target.length), &result);
  return result;
}

// allocate(descriptor, sizeBytes) -> 0 once the file has this size and the disk keeps room for all of it, else the error's number.
napi_value allocate(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "allocate");
  int fd = static_cast<int>(arguments.integer(0, 0, INT32_MAX));
  off_t size = static_cast<off_t>(arguments.integer(1, 1, int64_t{1} << 50));
  if (!arguments.good) return nullptr;
  int failed = fallocate(fd, 0, 0, size) == 0 ? 0 : errno;
  // A file system that cannot reserve space: writing may then fail when the disk is full.
  if (failed == EOPNOTSUPP) failed = ftruncate(fd, size) == 0 ? 0 : errno;
  return numberOf(env, failed);
}

// close(handle): the handle cannot be used any more. The memory is unmapped when the last window is collected.
napi_value close(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "close");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  arguments.external<Handle>(0)->mapping = nullptr;
  mapping::release(mapping);
  return nullptr;
}

// detach(buffer): every view of a window becomes empty, and the window's hold on the memory ends.
napi_value detach(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "detach");
  bool isBuffer = false;
  napi_is_arraybuffer(env, arguments.at(0), &isBuffer);
  if (!isBuffer) arguments.wrong(0, "is no window", false);
  else napi_detach_arraybuffer(env, arguments.at(0));
  return nullptr;
}

// places() -> what native/server takes to find the files of bytes.
napi_value places(napi_env env, napi_callback_info) {
  static file_places::Finder finder = {mapping::findPlace};
  napi_value result = file_places::give(env, &finder);
  return result != nullptr ? result : fail(env, "places", EINVAL);
}

// keep(max): so many of the mapped files stay open, in the whole process; those that are open already do.
napi_value keep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "keep");
  size_t max = static_cast<size_t>(arguments.integer(0, 0, 1 << 24));
  if (arguments.good) mapping::keepOpen(max);
  return nullptr;
}

// mapped() -> how many mappings and bytes this process holds: [count, bytes].
napi_value mapped(napi_env env, napi_callback_info) {
  mapping::Held held = mapping::held();
  double sizes[2] = {static_cast<double>(held.mappings), static_cast<double>(held.bytes)};
  napi_value result, number;
  napi_create_array_with_length(env, 2, &result);
  for (uint32_t at = 0; at < 2; at += 1) {
    napi_create_double(env, sizes[at], &number);
    napi_set_element(env, result, at, number);
  }
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  bus::watch();
  return give(env, exports,
              {{"open", open},
               {"openWritten", openWritten},
               {"openScattered", openScattered},
               {"window", window},
               {"isResident", isResident},
               {"fetch", fetch},
               {"ahead", ahead},
               {"readThrough", readThrough},
               {"copy", copy},
               {"places", places},
               {"keep", keep},
               {"allocate", allocate},
               {"close", close},
               {"detach", detach},
               {"mapped", mapped},
               {"readSmall", small_files::readSmall},
               {"openSmall", small_files::openSmall},
               {"readOpen", small_files::readOpen},
               {"closeSmall", small_files::closeSmall},
               {"look", small_files::look}});
}
