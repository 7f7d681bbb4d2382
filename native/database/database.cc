// A disk that refuses a write must not end the process: mends how the addon of lmdb-js meets that. See README.md for why.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <node_api.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <mutex>

#include "../calls.h"

namespace {

// An update of the page that says which state counts is shorter; any other write is a whole page.
constexpr size_t kMetaMax = 1024;
// An update that is refused is tried again after 1 ms, and each time after twice as long up to this.
constexpr int kMetaRestMs = 256;

// Why the system refused the last write of this thread; 0: it did not.
thread_local int refused = 0;

// In place of the addon's pwrite. An error of a page becomes a short write, for which LMDB has the answer EIO and no message:
// its message for an error is longer than the memory that it has for that. After an error of the page that says which state
// counts nothing can be written or read until the process ends: so that one is tried until the disk takes it.
ssize_t pwriteWhole(int file, const void* from, size_t length, off_t at) {
  for (int tries = 0;; ++tries) {
    const ssize_t done = pwrite(file, from, length, at);
    if (done >= 0 || errno == EINTR) return done;
    refused = errno;
    if (length >= kMetaMax) return 0;
    const int milliseconds = tries < 8 ? 1 << tries : kMetaRestMs;
    const timespec rest = {0, milliseconds * 1'000'000L};
    nanosleep(&rest, nullptr);
  }
}

// In place of its writev, for pages that lie one behind the other.
ssize_t writevWhole(int file, const iovec* from, int count) {
  const ssize_t done = writev(file, from, count);
  if (done >= 0 || errno == EINTR) return done;
  refused = errno;
  return 0;
}

// What is found of one loaded library.
struct Library {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols = nullptr;
  const char* texts = nullptr;
  const ElfW(Rela) * jumps = nullptr;
  size_t jumpBytes = 0;
  ElfW(Addr) nameAt = 0;
};

Library libraryOf(const dl_phdr_info* info) {
  Library found{info->dlpi_addr};
  for (int at = 0; at < info->dlpi_phnum; ++at) {
    if (info->dlpi_phdr[at].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[at].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB: found.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr); break;
        case DT_STRTAB: found.texts = reinterpret_cast<const char*>(entry->d_un.d_ptr); break;
        case DT_JMPREL: found.jumps = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr); break;
        case DT_PLTRELSZ: found.jumpBytes = entry->d_un.d_val; break;
        case DT_SONAME: found.nameAt = entry->d_un.d_val; break;
        default: break;
      }
    }
  }
  return found;
}

// What takes the place of a function of this name; null: nothing.
void* insteadOf(const char* name) {
  if (strcmp(name, "pwrite64") == 0 || strcmp(name, "pwrite") == 0) return reinterpret_cast<void*>(pwriteWhole);
  return strcmp(name, "writev") == 0 ? reinterpret_cast<void*>(writevWhole) : nullptr;
}

// True: the slot leads to `mine` from now on. Its page may have been made readable only after the library was loaded.
bool lead(void** slot, void* mine) {
  if (*slot == mine) return true;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));
  if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, mine, __ATOMIC_RELEASE);
  return true;
}

int guardLibrary(dl_phdr_info* info, size_t, void* counted) {
  const Library library = libraryOf(info);
  if (library.symbols == nullptr || library.texts == nullptr || library.jumps == nullptr || library.nameAt == 0) return 0;
  if (strcmp(library.texts + library.nameAt, "lmdb.node") != 0) return 0;
  for (size_t at = 0; at < library.jumpBytes / sizeof(ElfW(Rela)); ++at) {
    const ElfW(Rela)& jump = library.jumps[at];
    const ElfW(Sym)& symbol = library.symbols[ELF64_R_SYM(jump.r_info)];
    void* mine = insteadOf(library.texts + symbol.st_name);
    if (mine == nullptr) continue;
    if (lead(reinterpret_cast<void**>(library.base + jump.r_offset), mine)) ++*static_cast<int*>(counted);
  }
  return 0;
}

std::mutex guarding;

// guard() -> true where the addon of lmdb-js, which must be loaded, writes through this file from now on.
napi_value guard(napi_env env, napi_callback_info) {
  const std::lock_guard<std::mutex> alone(guarding);
  int guarded = 0;
  dl_iterate_phdr(guardLibrary, &guarded);
  napi_value result;
  napi_get_boolean(env, guarded >= 2, &result);
  return result;
}

// refusedWrite() -> the errno of the last write of LMDB on this thread that the system refused, once; 0: there was none.
napi_value refusedWrite(napi_env env, napi_callback_info) {
  const int code = refused;
  refused = 0;
  return numberOf(env, code);
}

}  // namespace

NAPI_MODULE_INIT() { return give(env, exports, {{"guard", guard}, {"refusedWrite", refusedWrite}}); }
