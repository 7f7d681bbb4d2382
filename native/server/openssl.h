// The calls of OpenSSL that this addon makes. Node brings OpenSSL along and exports its functions; its headers are not on every machine
// that has Node and a compiler, and a Node that has another library must not keep the addon from loading. So the functions are looked
// up by name, once, and used only where all of them are there and the major version is 3, which promises a stable binary interface.
// Constants are those of OpenSSL 3's public headers (ssl.h, tls1.h, bio.h).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace openssl {

struct Ssl;
struct Ctx;
struct Method;
struct Bio;
struct BioMethod;
struct X509;
struct PKey;
struct CipherCtx;
struct Cipher;
struct MacCtx;
struct Param {
  const char* key;
  unsigned int type;
  void* data;
  size_t size, returned;
};

constexpr int kCtrlMessageCb = 15, kCtrlMode = 33, kCtrlSessCacheMode = 44, kCtrlServerNameCb = 53;
constexpr int kCtrlChainCert = 89, kCtrlGroupsList = 92, kCtrlMinVersion = 123;
constexpr long kModeReleaseBuffers = 0x10, kModeMovingBuffer = 2;
constexpr int kTls12 = 0x0303, kTls13 = 0x0304;
constexpr uint64_t kOpIgnoreEof = 1u << 7, kOpNoCompression = 1u << 17, kOpPrioritizeChaCha = 1u << 21, kOpServerPreference = 1u << 22,
                   kOpNoRenegotiation = 1u << 30;
constexpr int kErrorWantRead = 2, kErrorZeroReturn = 6;
constexpr int kBioTypeSourceSink = 0x0400, kBioRetryRead = 0x01 | 0x08, kBioRetryAny = 0x0f, kBioCtrlFlush = 11;
constexpr int kTlsextOk = 0, kTlsextAlertFatal = 2, kTlsextNoAck = 3;
constexpr unsigned kParamText = 4, kParamBytes = 5;
constexpr long kSessionTimeoutSeconds = 8 * 3600;
constexpr int kAlertUnrecognizedName = 112;
constexpr int kHandshakeRecord = 22, kKeyUpdate = 24;

using TicketCb = int (*)(Ssl*, unsigned char* name, unsigned char* iv, CipherCtx*, MacCtx*, int isNew);
using AlpnCb = int (*)(Ssl*, const unsigned char** out, unsigned char* outLength, const unsigned char* in, unsigned inLength, void*);
using PasswordCb = int (*)(char*, int, int, void*);

// Name in OpenSSL, result, arguments.
#define SERVER_OPENSSL_CALLS(X)                                                                  \
  X(OpenSSL_version_num, unsigned long, (void))                                                  \
  X(ERR_clear_error, void, (void))                                                               \
  X(ERR_get_error, unsigned long, (void))                                                        \
  X(ERR_error_string_n, void, (unsigned long, char*, size_t))                                    \
  X(TLS_server_method, const Method*, (void))                                                    \
  X(SSL_CTX_new, Ctx*, (const Method*))                                                          \
  X(SSL_CTX_free, void, (Ctx*))                                                                  \
  X(SSL_CTX_ctrl, long, (Ctx*, int, long, void*))                                                \
  X(SSL_CTX_callback_ctrl, long, (Ctx*, int, void (*)(void)))                                    \
  X(SSL_CTX_set_options, uint64_t, (Ctx*, uint64_t))                                             \
  X(SSL_CTX_set_timeout, long, (Ctx*, long))                                                     \
  X(SSL_CTX_set_num_tickets, int, (Ctx*, size_t))                                                \
  X(SSL_CTX_set_cipher_list, int, (Ctx*, const char*))                                           \
  X(SSL_CTX_set_ciphersuites, int, (Ctx*, const char*))                                          \
  X(SSL_CTX_set_alpn_select_cb, void, (Ctx*, AlpnCb, void*))                                     \
  X(SSL_CTX_set_tlsext_ticket_key_evp_cb, int, (Ctx*, TicketCb))                                 \
  X(SSL_CTX_use_certificate, int, (Ctx*, X509*))                                                 \
  X(SSL_CTX_use_PrivateKey, int, (Ctx*, PKey*))                                                   \
  X(SSL_CTX_check_private_key, int, (const Ctx*))                                                \
  X(SSL_new, Ssl*, (Ctx*))                                                                       \
  X(SSL_free, void, (Ssl*))                                                                      \
  X(SSL_set_accept_state, void, (Ssl*))                                                          \
  X(SSL_set_bio, void, (Ssl*, Bio*, Bio*))                                                       \
  X(SSL_set_SSL_CTX, Ctx*, (Ssl*, Ctx*))                                                         \
  X(SSL_get_SSL_CTX, Ctx*, (const Ssl*))                                                         \
  X(SSL_get_servername, const char*, (const Ssl*, int))                                          \
  X(SSL_set_ex_data, int, (Ssl*, int, void*))                                                    \
  X(SSL_get_ex_data, void*, (const Ssl*, int))                                                   \
  X(SSL_do_handshake, int, (Ssl*))                                                               \
  X(SSL_read_ex, int, (Ssl*, void*, size_t, size_t*))                                            \
  X(SSL_write_ex, int, (Ssl*, const void*, size_t, size_t*))                                     \
  X(SSL_version, int, (const Ssl*))                                                              \
  X(SSL_get_error, int, (const Ssl*, int))                                                       \
  X(SSL_shutdown, int, (Ssl*))                                                                   \
  X(BIO_new, Bio*, (const BioMethod*))                                                           \
  X(BIO_new_mem_buf, Bio*, (const void*, int))                                                   \
  X(BIO_free, int, (Bio*))                                                                       \
  X(BIO_meth_new, BioMethod*, (int, const char*))                                                \
  X(BIO_meth_set_write, int, (BioMethod*, int (*)(Bio*, const char*, int)))                      \
  X(BIO_meth_set_read, int, (BioMethod*, int (*)(Bio*, char*, int)))                             \
  X(BIO_meth_set_ctrl, int, (BioMethod*, long (*)(Bio*, int, long, void*)))                      \
  X(BIO_set_data, void, (Bio*, void*))                                                           \
  X(BIO_get_data, void*, (Bio*))                                                                 \
  X(BIO_set_init, void, (Bio*, int))                                                             \
  X(BIO_set_flags, void, (Bio*, int))                                                            \
  X(BIO_clear_flags, void, (Bio*, int))                                                          \
  X(PEM_read_bio_X509, X509*, (Bio*, X509**, PasswordCb, void*))                                 \
  X(PEM_read_bio_PrivateKey, PKey*, (Bio*, PKey**, PasswordCb, void*))                             \
  X(X509_free, void, (X509*))                                                                    \
  X(EVP_PKEY_free, void, (PKey*))                                                                 \
  X(EVP_aes_256_cbc, const Cipher*, (void))                                                      \
  X(EVP_CipherInit_ex, int, (CipherCtx*, const Cipher*, void*, const uint8_t*, const uint8_t*, int)) \
  X(EVP_MAC_CTX_set_params, int, (MacCtx*, const Param*))                                        \
  X(RAND_bytes, int, (unsigned char*, int))

struct Calls {
#define SERVER_OPENSSL_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  SERVER_OPENSSL_CALLS(SERVER_OPENSSL_MEMBER)
#undef SERVER_OPENSSL_MEMBER
  bool all = true;

  Calls() {
#define SERVER_OPENSSL_FIND(name, result, arguments)                      \
  name = reinterpret_cast<result(*) arguments>(dlsym(RTLD_DEFAULT, #name)); \
  all = all && name != nullptr;
    SERVER_OPENSSL_CALLS(SERVER_OPENSSL_FIND)
#undef SERVER_OPENSSL_FIND
    all = all && OpenSSL_version_num() >> 28 == 3;
  }
};
#undef SERVER_OPENSSL_CALLS

// Null: this Node has no OpenSSL 3, or not all of it.
inline const Calls* calls() {
  static const Calls found;
  return found.all ? &found : nullptr;
}

// Empties the queue of errors before calls about a session, and after them. The thread has one queue, for sessions of Node as well:
// what is left in it would be taken for an error of the next of them.
struct ErrorsCleared {
  const Calls& ssl;
  explicit ErrorsCleared(const Calls& calls) : ssl(calls) { ssl.ERR_clear_error(); }
  ~ErrorsCleared() { ssl.ERR_clear_error(); }
  ErrorsCleared(const ErrorsCleared&) = delete;
  ErrorsCleared& operator=(const ErrorsCleared&) = delete;
};

// The control function of a BIO that reads and writes memory of ours.
inline long controlBio(Bio*, int command, long, void*) { return command == kBioCtrlFlush ? 1 : 0; }

}  // namespace openssl
