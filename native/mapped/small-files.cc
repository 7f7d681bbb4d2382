// Files that are read now and then, whole and into memory of the caller: mapping and unmapping one costs ten times as much.
#include "small-files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <unordered_set>

#include "../calls.h"
#include "mapping.h"

namespace {

using mapping::kPathMax;

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
  Facts stated = {found.st_ino, mapping::modifiedNs(found), static_cast<double>(found.st_size)};
  memcpy(facts, &stated, sizeof(stated));
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

}  // namespace

namespace small_files {

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

napi_value closeSmall(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "closeSmall");
  int fd = givenOf(arguments, 0);
  if (!arguments.good) return nullptr;
  given().erase(fd);
  ::close(fd);
  return nullptr;
}

napi_value readOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "readOpen");
  int fd = givenOf(arguments, 0);
  Bytes target = arguments.bytes(1);
  size_t size = static_cast<size_t>(arguments.integer(2, 0, int64_t{1} << 50));
  return arguments.good ? numberOf(env, readAll(fd, size, target)) : nullptr;
}

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

}  // namespace small_files
