// Files mapped into memory, shared by every thread of the process. See README.md for why and how fast.
//
// A Mapping covers one whole file. It is counted: one count for each open Handle, for each ArrayBuffer handed to
// JavaScript, and for each fetch under way in the pool. The last one to leave unmaps. Two threads that open the same
// file get the same Mapping, so its page tables are filled once.
#include <errno.h>
#include <fcntl.h>
#include <node_api.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>

#include "../bus.h"
#include "../calls.h"
#include "../file-places.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace {

using Key = std::tuple<dev_t, ino_t, off_t, int64_t>;

// Used instead of the modification time of a file that is being written to; no file has this time.
constexpr int64_t kWritten = INT64_MIN;

struct Mapping {
  Key key;
  uint8_t* start;
  size_t size;
  size_t holders;
  // Less than 0: it was closed once the file was mapped.
  int fd;
};

std::mutex guard;
std::map<Key, Mapping*> mappings;
// Those whose file is kept open, by their first byte.
std::map<const uint8_t*, Mapping*> keptOpen;
// So many files are kept open at most.
size_t keptMax = 256;

constexpr size_t kPathMax = 4096;

// ArrayBuffers of one GiB at most: some supported versions of V8 allow no more than 4 GiB in one.
constexpr size_t kWindow = size_t{1} << 30;

size_t pageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void release(Mapping* mapping) {
  {
    std::lock_guard<std::mutex> lock(guard);
    if (--mapping->holders > 0) return;
    mappings.erase(mapping->key);
    if (mapping->fd >= 0) keptOpen.erase(mapping->start);
  }
  // Nobody finds it any more, and others need not wait for this.
  if (mapping->size > 0) munmap(mapping->start, mapping->size);
  if (mapping->fd >= 0) ::close(mapping->fd);
  delete mapping;
}

void hold(Mapping* mapping) {
  std::lock_guard<std::mutex> lock(guard);
  mapping->holders += 1;
}

// What JavaScript holds. `mapping` is null once closed.
struct Handle {
  Mapping* mapping;
};

int64_t modifiedNs(const struct stat& found) {
  return static_cast<int64_t>(found.st_mtim.tv_sec) * 1000000000 + found.st_mtim.tv_nsec;
}

// The mapping of an open file, made on first need; null with errno set where mmap fails. Takes the descriptor over. `written`: the
// file is being written to, so its time says nothing about whether it is the same one.
Mapping* mappingOf(int fd, const struct stat& found, bool written) {
  Key key{found.st_dev, found.st_ino, found.st_size, written ? kWritten : modifiedNs(found)};
  std::lock_guard<std::mutex> lock(guard);
  auto known = mappings.find(key);
  if (known != mappings.end()) {
    known->second->holders += 1;
    ::close(fd);
    return known->second;
  }
  size_t size = static_cast<size_t>(found.st_size);
  void* start = nullptr;
  if (size > 0) {
    start = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) {
      int code = errno;
      ::close(fd);
      errno = code;
      return nullptr;
    }
    // A hint: file systems that support it then read and map two MiB at a time.
    madvise(start, size, MADV_HUGEPAGE);
  }
  bool isKept = size > 0 && keptOpen.size() < keptMax;
  if (!isKept) ::close(fd);
  Mapping* made = new Mapping{key, static_cast<uint8_t*>(start), size, 1, isKept ? fd : -1};
  mappings.emplace(key, made);
  if (isKept) keptOpen.emplace(made->start, made);
  return made;
}

// Whole pages around bytes of the mapping.
struct Range {
  uint8_t* start;
  size_t length;
};

// `start` to `end`: within the mapping.
Range pagesAround(const Mapping* mapping, size_t start, size_t end) {
  if (start == end) return {mapping->start, 0};
  size_t first = start / pageSize() * pageSize();
  return {mapping->start + first, end - first};
}

bool isResident(const Range& range) {
  size_t page = pageSize();
  unsigned char pages[1024];
  for (size_t done = 0; done < range.length;) {
    size_t length = range.length - done;
    if (length > sizeof(pages) * page) length = sizeof(pages) * page;
    if (mincore(range.start + done, length, pages) != 0) return false;
    for (size_t at = 0; at < (length + page - 1) / page; at += 1) {
      if ((pages[at] & 1) == 0) return false;
    }
    done += length;
  }
  return true;
}

// Brings every page in and fills the page tables. Kernels before 5.14 know no MADV_POPULATE_READ: touch them then.
int populate(const Range& range) {
  if (range.length == 0) return 0;
  if (madvise(range.start, range.length, MADV_POPULATE_READ) == 0) return 0;
  if (errno != EINVAL) return errno;
  madvise(range.start, range.length, MADV_WILLNEED);
  for (size_t at = 0; at < range.length; at += pageSize()) {
    char byte;
    if (!bus::copied(&byte, range.start + at, 1)) return EFAULT;
  }
  return 0;
}

void finalizeHandle(napi_env, void* data, void*) {
  Handle* handle = static_cast<Handle*>(data);
  Externals<Handle>::forget(handle);
  if (handle->mapping != nullptr) release(handle->mapping);
  delete handle;
}

void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

napi_value openAs(napi_env env, napi_callback_info info, const char* name, bool written) {
  Arguments arguments(env, info, name);
  std::string path = arguments.text(0, kPathMax);
  if (!arguments.good) return nullptr;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? nullptr : fail(env, "open", errno);
  struct stat found;
  if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
    int code = S_ISREG(found.st_mode) ? errno : EISDIR;
    ::close(fd);
    return fail(env, "open", code);
  }
  Mapping* mapping = mappingOf(fd, found, written);
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
  napi_create_bigint_int64(env, modifiedNs(found), &number);
  set(env, result, "modifiedNs", number);
  return result;
}

// open(path) -> { handle, sizeBytes, inode, modifiedNs }, or undefined where there is no such file.
napi_value open(napi_env env, napi_callback_info info) { return openAs(env, info, "open", false); }

// openWritten(path): the same for a file whose bytes are still being written, and whose size stays.
napi_value openWritten(napi_env env, napi_callback_info info) { return openAs(env, info, "openWritten", true); }

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
  return arguments.good ? pagesAround(mapping, start, end) : Range{nullptr, 0};
}

void finalizeWindow(napi_env, void*, void* hint) { release(static_cast<Mapping*>(hint)); }

// window(handle, index) -> ArrayBuffer over the index-th GiB of the file.
napi_value window(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "window");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  if (mapping->size == 0) return fail(env, "window", ERANGE);
  size_t start = static_cast<size_t>(arguments.integer(1, 0, (mapping->size - 1) / kWindow)) * kWindow;
  if (!arguments.good) return nullptr;
  size_t length = mapping->size - start < kWindow ? mapping->size - start : kWindow;
  hold(mapping);
  napi_value buffer;
  if (napi_create_external_arraybuffer(env, mapping->start + start, length, finalizeWindow, mapping, &buffer) !=
      napi_ok) {
    release(mapping);
    return fail(env, "external array buffers are not supported", ENOTSUP);
  }
  return buffer;
}

// settle(handle, start, end, fill) -> true where the bytes are in memory; with `fill` their page tables are then filled
// too, so that reading them faults no more. Never waits for the disk.
napi_value settle(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "settle");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  Range range = rangeOf(mapping, arguments);
  bool fill = arguments.truth(3);
  if (!arguments.good) return nullptr;
  bool here = isResident(range) && (!fill || populate(range) == 0);
  napi_value result;
  napi_get_boolean(env, here, &result);
  return result;
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
  fetch->failed = populate(fetch->range);
}

void endFetch(napi_env env, napi_status status, void* data) {
  Fetch* fetch = static_cast<Fetch*>(data);
  napi_value result;
  napi_get_boolean(env, status == napi_ok && fetch->failed == 0, &result);
  napi_resolve_deferred(env, fetch->deferred, result);
  napi_delete_async_work(env, fetch->work);
  release(fetch->mapping);
  delete fetch;
}

// fetch(handle, start, end) -> promise of true once the bytes are in memory and mapped, of false where the disk failed.
napi_value fetch(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "fetch");
  Mapping* mapping = mappingOf(env, arguments);
  if (mapping == nullptr) return nullptr;
  Range range = rangeOf(mapping, arguments);
  if (!arguments.good) return nullptr;
  hold(mapping);
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
  release(mapping);
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

// Results of `readSmall` where it read nothing.
constexpr double kMissing = -1, kElsewhere = -2, kLarger = -3;

// What `readSmall` tells of a file, as JavaScript sees it.
struct Facts {
  uint64_t inode;
  int64_t modifiedNs;
  double sizeBytes;
};

// Reads all bytes of an open file without waiting for the disk; for bytes that are not in memory the caller waits on another
// thread.
double readAll(int fd, size_t size, const Bytes& target) {
  if (size > target.length) return kLarger;
  if (size == 0) return 0;
  iovec part = {target.data, size};
  ssize_t got = preadv2(fd, &part, 1, 0, RWF_NOWAIT);
  return got == static_cast<ssize_t>(size) ? static_cast<double>(got) : kElsewhere;
}

// The argument at `index` as room for facts; null where it is none.
uint8_t* factsOf(Arguments& arguments, size_t index) {
  Bytes facts = arguments.bytes(index);
  if (arguments.good && facts.length != sizeof(Facts)) arguments.wrong(index, "has another length", true);
  return arguments.good ? facts.data : nullptr;
}

void tell(uint8_t* facts, const struct stat& found) {
  Facts told = {found.st_ino, modifiedNs(found), static_cast<double>(found.st_size)};
  memcpy(facts, &told, sizeof(told));
}

// Opens a regular file and reads its facts. Less than 0 where there is none, or an exception waits (`failed`).
int openRegular(napi_env env, const std::string& path, struct stat* found, bool* failed) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int code = fd < 0 ? errno : 0;
  if (fd >= 0 && fstat(fd, found) != 0) code = errno;
  else if (fd >= 0 && !S_ISREG(found->st_mode)) code = EISDIR;
  if (code == 0) return fd;
  if (fd >= 0) ::close(fd);
  *failed = code != ENOENT;
  if (*failed) fail(env, "open", code);
  return -1;
}

// readSmall(path, target, facts) -> the bytes of the file, which then are in `target`; kMissing where there is none, kElsewhere where
// not all of them are in memory (or the file system cannot say), kLarger where `target` is too small. `facts` are those above, but
// for kMissing. For files that are asked for now and then: mapping and unmapping one costs ten times as much.
napi_value readSmall(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readSmall");
  std::string path = arguments.text(0, kPathMax);
  Bytes target = arguments.bytes(1);
  uint8_t* facts = factsOf(arguments, 2);
  if (!arguments.good) return nullptr;
  struct stat found;
  bool failed = false;
  int fd = openRegular(env, path, &found, &failed);
  if (fd < 0) return failed ? nullptr : numberOf(env, kMissing);
  double got = readAll(fd, static_cast<size_t>(found.st_size), target);
  ::close(fd);
  tell(facts, found);
  return numberOf(env, got);
}

// Descriptors that `openSmall` gave on this thread; JavaScript may use no others.
std::unordered_set<int>& given() {
  thread_local std::unordered_set<int> descriptors;
  return descriptors;
}

// One of them, as the argument at `index`.
int givenOf(Arguments& arguments, size_t index) {
  int fd = static_cast<int>(arguments.integer(index, 0, INT32_MAX));
  if (arguments.good && given().count(fd) == 0) arguments.wrong(index, "is no descriptor of a small file", true);
  return fd;
}

// openSmall(path, facts) -> a descriptor for `readOpen`, which `closeSmall` closes; kMissing where there is no such file.
napi_value openSmall(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "openSmall");
  std::string path = arguments.text(0, kPathMax);
  uint8_t* facts = factsOf(arguments, 1);
  if (!arguments.good) return nullptr;
  struct stat found;
  bool failed = false;
  int fd = openRegular(env, path, &found, &failed);
  if (failed) return nullptr;
  if (fd < 0) return numberOf(env, kMissing);
  tell(facts, found);
  given().insert(fd);
  return numberOf(env, fd);
}

// closeSmall(descriptor)
napi_value closeSmall(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "closeSmall");
  int fd = givenOf(arguments, 0);
  if (!arguments.good) return nullptr;
  given().erase(fd);
  ::close(fd);
  return nullptr;
}

// readOpen(descriptor, target, sizeBytes) -> as `readSmall`, of a file of this size that is open.
napi_value readOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readOpen");
  int fd = givenOf(arguments, 0);
  Bytes target = arguments.bytes(1);
  size_t size = static_cast<size_t>(arguments.integer(2, 0, int64_t{1} << 50));
  return arguments.good ? numberOf(env, readAll(fd, size, target)) : nullptr;
}

// look(path, facts) -> true where there is such a file.
napi_value look(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "look");
  std::string path = arguments.text(0, kPathMax);
  uint8_t* facts = factsOf(arguments, 1);
  if (!arguments.good) return nullptr;
  struct stat found;
  bool isThere = stat(path.c_str(), &found) == 0;
  if (!isThere && errno != ENOENT) return fail(env, "stat", errno);
  if (isThere) tell(facts, found);
  napi_value result;
  napi_get_boolean(env, isThere, &result);
  return result;
}

// Whether bytes that somebody holds lie in a file that is kept open, and where.
bool findPlace(const uint8_t* start, size_t length, file_places::Place* place) {
  std::lock_guard<std::mutex> lock(guard);
  auto after = keptOpen.upper_bound(start);
  if (after == keptOpen.begin()) return false;
  const Mapping* mapping = std::prev(after)->second;
  size_t offset = static_cast<size_t>(start - mapping->start);
  if (offset > mapping->size || length > mapping->size - offset) return false;
  *place = {mapping->fd, static_cast<off_t>(offset)};
  return true;
}

// places() -> what native/server takes to find the files of bytes.
napi_value places(napi_env env, napi_callback_info) {
  static file_places::Told told = {findPlace};
  napi_value result = file_places::give(env, &told);
  return result != nullptr ? result : fail(env, "places", EINVAL);
}

// keep(max): so many of the mapped files stay open, in the whole process; those that are open already do.
napi_value keep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "keep");
  size_t max = static_cast<size_t>(arguments.integer(0, 0, 1 << 24));
  if (!arguments.good) return nullptr;
  std::lock_guard<std::mutex> lock(guard);
  keptMax = max;
  return nullptr;
}

// mapped() -> how many mappings and bytes this process holds: [count, bytes].
napi_value mapped(napi_env env, napi_callback_info) {
  double sizes[2] = {0, 0};
  {
    std::lock_guard<std::mutex> lock(guard);
    for (const auto& each : mappings) sizes[1] += static_cast<double>(each.second->size);
    sizes[0] = static_cast<double>(mappings.size());
  }
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
  return give(env, exports, {{"open", open}, {"openWritten", openWritten}, {"window", window}, {"settle", settle}, {"fetch", fetch},
                             {"copy", copy}, {"places", places}, {"keep", keep}, {"allocate", allocate}, {"close", close}, {"detach", detach}, {"mapped", mapped},
                             {"readSmall", readSmall}, {"openSmall", openSmall}, {"readOpen", readOpen},
                             {"closeSmall", closeSmall}, {"look", look}});
}
