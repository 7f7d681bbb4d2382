// Certificates, tickets and sessions by OpenSSL. See tls.h.
#include "tls.h"

#include <algorithm>
#include <cstring>

namespace server {

using namespace openssl;

namespace {

// The alert "decode_error" in a record (RFC 8446 section 6): a length is out of its range.
constexpr char kLengthAlert[] = "\x15\x03\x03\0\x02\x02\x32";
constexpr char kAlpn[] = "\x08http/1.1";

// RFC 7301: a client that names protocols and not ours is refused by `no_application_protocol`, since it would not understand us.
int chooseProtocol(Ssl*, const unsigned char** out, unsigned char* outLength, const unsigned char* in, unsigned length, void*) {
  for (unsigned at = 0; at < length; at += 1u + in[at]) {
    if (in[at] != kAlpn[0] || length - at < sizeof(kAlpn) - 1 || memcmp(in + at, kAlpn, sizeof(kAlpn) - 1) != 0) continue;
    *out = in + at + 1;
    *outLength = in[at];
    return kTlsextOk;
  }
  return kTlsextAlertFatal;
}

// New keys that a client may have while its connection lasts: each is for gigabytes (RFC 8446 section 5.5), and costs as much processor
// time as hundreds of its bytes.
constexpr size_t kNewKeysMax = 256;

TlsContext* contextOf(const Ssl* session) { return static_cast<TlsContext*>(calls()->SSL_get_ex_data(session, 0)); }

// Makes or finds the key of a ticket (RFC 5077): AES-256-CBC and HMAC-SHA-256.
int ticketKey(Ssl* session, unsigned char* name, unsigned char* iv, CipherCtx* cipher, MacCtx* mac, int isNew) {
  const Calls& ssl = *calls();
  const TicketKeys& keys = contextOf(session)->tickets;
  uint8_t key[TicketKeys::kKey];
  int found = 1;
  if (isNew != 0) {
    keys.newest(key);
    memcpy(name, key, TicketKeys::kName);
    if (ssl.RAND_bytes(iv, 16) != 1) return -1;
  } else {
    found = keys.find(name, key);
    if (found == 0) return 0;
    // Clients use a ticket of TLS 1.3 once (RFC 8446 appendix C.4): they need another one for the next time.
    if (ssl.SSL_version(session) == kTls13) found = 2;
  }
  static char digest[] = "SHA256";
  uint8_t* macKey = key + TicketKeys::kName + TicketKeys::kCipherKey;
  Param params[3] = {{"key", kParamBytes, macKey, TicketKeys::kMacKey, 0}, {"digest", kParamText, digest, 0, 0}, {nullptr, 0, nullptr, 0, 0}};
  bool good = ssl.EVP_CipherInit_ex(cipher, ssl.EVP_aes_256_cbc(), nullptr, key + TicketKeys::kName, iv, isNew) == 1 &&
              ssl.EVP_MAC_CTX_set_params(mac, params) == 1;
  return good ? found : -1;
}

int writeBio(Bio* bio, const char* bytes, int length) {
  if (length > 0) static_cast<TlsContext*>(calls()->BIO_get_data(bio))->out.append(bytes, static_cast<size_t>(length));
  return length;
}

int readBio(Bio* bio, char* to, int length) {
  TlsContext* context = static_cast<TlsContext*>(calls()->BIO_get_data(bio));
  calls()->BIO_clear_flags(bio, kBioRetryAny);
  size_t got = std::min(context->inLength, static_cast<size_t>(std::max(length, 0)));
  if (got == 0) {
    calls()->BIO_set_flags(bio, kBioRetryRead);
    return -1;
  }
  memcpy(to, context->in, got);
  context->in += got;
  context->inLength -= got;
  return static_cast<int>(got);
}

// Counts new keys of the client. Where there are too many at once, the rest of its bytes is not read.
void sawMessage(int isWritten, int, int type, const void* bytes, size_t length, Ssl* session, void*) {
  if (isWritten != 0 || type != kHandshakeRecord || length == 0 || *static_cast<const uint8_t*>(bytes) != kKeyUpdate) return;
  TlsContext* context = contextOf(session);
  context->newKeys += 1;
  if (context->newKeys > kNewKeysMax) context->inLength = 0;
}

int noPassword(char*, int, int, void*) { return 0; }

std::string reason(const Calls& ssl, const char* what) {
  char text[256] = "";
  ssl.ERR_error_string_n(ssl.ERR_get_error(), text, sizeof(text));
  ssl.ERR_clear_error();
  return std::string(what) + ": " + text;
}

// The chain of a PEM text, the certificate itself first. '': done.
std::string takeChain(const Calls& ssl, Ctx* ctx, const std::string& pem) {
  Bio* bio = ssl.BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  std::string wrong;
  size_t count = 0;
  for (; wrong.empty(); count += 1) {
    X509* one = ssl.PEM_read_bio_X509(bio, nullptr, noPassword, nullptr);
    if (one == nullptr) break;
    bool good = count == 0 ? ssl.SSL_CTX_use_certificate(ctx, one) == 1 : ssl.SSL_CTX_ctrl(ctx, kCtrlChainCert, 1, one) == 1;
    ssl.X509_free(one);
    if (!good) wrong = reason(ssl, "the certificate cannot be used");
  }
  ssl.BIO_free(bio);
  if (wrong.empty() && count == 0) wrong = reason(ssl, "there is no certificate in it");
  ssl.ERR_clear_error();
  return wrong;
}

std::string takeKey(const Calls& ssl, Ctx* ctx, const std::string& pem) {
  Bio* bio = ssl.BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  PKey* key = ssl.PEM_read_bio_PrivateKey(bio, nullptr, noPassword, nullptr);
  ssl.BIO_free(bio);
  if (key == nullptr) return reason(ssl, "there is no usable key in it");
  bool good = ssl.SSL_CTX_use_PrivateKey(ctx, key) == 1 && ssl.SSL_CTX_check_private_key(ctx) == 1;
  ssl.EVP_PKEY_free(key);
  return good ? "" : reason(ssl, "the key is not that of the certificate");
}

}  // namespace

void TicketKeys::newest(uint8_t* to) const { memcpy(to, at(count()), kKey); }

int TicketKeys::find(const uint8_t* name, uint8_t* to) const {
  uint32_t last = count();
  for (uint32_t back = 0; back < kPlaces - 1 && back < last; back += 1) {
    if (memcmp(at(last - back), name, kName) != 0) continue;
    memcpy(to, at(last - back), kKey);
    return back == 0 ? 1 : 2;
  }
  return 0;
}

TlsContext::TlsContext(const Calls* found, Given given) : ssl(found), tickets(given.tickets), given_(std::move(given)) {
  method_ = ssl->BIO_meth_new(kBioTypeSourceSink | 100, "window");
  ssl->BIO_meth_set_write(method_, writeBio);
  ssl->BIO_meth_set_read(method_, readBio);
  ssl->BIO_meth_set_ctrl(method_, controlBio);
}

// The method is left behind: sessions of OpenSSL may point to it, and there is one a server.
TlsContext::~TlsContext() {
  drop(&used_);
  drop(&added_);
}

void TlsContext::drop(std::vector<Pair>* pairs) {
  for (const Pair& pair : *pairs) ssl->SSL_CTX_free(pair.ctx);
  pairs->clear();
}

Ctx* TlsContext::make(std::string* wrong) {
  Ctx* ctx = ssl->SSL_CTX_new(ssl->TLS_server_method());
  if (ctx == nullptr) return *wrong = reason(*ssl, "no context"), nullptr;
  ssl->SSL_CTX_set_options(ctx, kOpNoRenegotiation | kOpNoCompression | kOpServerPreference | kOpPrioritizeChaCha | kOpIgnoreEof);
  ssl->SSL_CTX_ctrl(ctx, kCtrlMode, kModeReleaseBuffers | kModeMovingBuffer, nullptr);
  ssl->SSL_CTX_ctrl(ctx, kCtrlSessCacheMode, 0, nullptr);
  ssl->SSL_CTX_set_timeout(ctx, kSessionTimeoutSeconds);
  ssl->SSL_CTX_set_num_tickets(ctx, 1);
  ssl->SSL_CTX_set_alpn_select_cb(ctx, chooseProtocol, nullptr);
  int (*byName)(Ssl*, int*, void*) = [](Ssl* session, int* alert, void*) {
    const TlsContext* context = contextOf(session);
    const char* name = calls()->SSL_get_servername(session, 0);
    if (name == nullptr) return kTlsextNoAck;
    Ctx* wanted = context->find(name);
    if (wanted == nullptr && context->given_.refusesUnknown) return *alert = kAlertUnrecognizedName, kTlsextAlertFatal;
    if (wanted == nullptr) return kTlsextNoAck;
    if (wanted != calls()->SSL_get_SSL_CTX(session)) calls()->SSL_set_SSL_CTX(session, wanted);
    return kTlsextOk;
  };
  ssl->SSL_CTX_callback_ctrl(ctx, kCtrlServerNameCb, reinterpret_cast<void (*)(void)>(byName));
  ssl->SSL_CTX_callback_ctrl(ctx, kCtrlMessageCb, reinterpret_cast<void (*)(void)>(sawMessage));
  bool good = ssl->SSL_CTX_ctrl(ctx, kCtrlMinVersion, kTls12, nullptr) == 1 &&
              ssl->SSL_CTX_set_ciphersuites(ctx, given_.suites.c_str()) == 1 &&
              ssl->SSL_CTX_set_cipher_list(ctx, given_.ciphers.c_str()) == 1 &&
              ssl->SSL_CTX_ctrl(ctx, kCtrlGroupsList, 0, &given_.groups[0]) == 1 &&
              ssl->SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticketKey) == 1;
  if (!good) *wrong = reason(*ssl, "this OpenSSL lacks a cipher or a version");
  return ctx;
}

std::string TlsContext::add(const std::string& names, const std::string& cert, const std::string& key) {
  std::string wrong;
  Ctx* ctx = make(&wrong);
  if (wrong.empty()) wrong = takeChain(*ssl, ctx, cert);
  if (wrong.empty()) wrong = takeKey(*ssl, ctx, key);
  // Reading PEM leaves errors behind where it succeeds, too.
  ssl->ERR_clear_error();
  if (!wrong.empty()) {
    if (ctx != nullptr) ssl->SSL_CTX_free(ctx);
    drop(&added_);
    return wrong;
  }
  Pair pair{{}, ctx};
  for (size_t at = 0; at < names.size();) {
    size_t end = std::min(names.find('\n', at), names.size());
    pair.names.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  added_.push_back(std::move(pair));
  return "";
}

bool TlsContext::use() {
  if (added_.empty()) return false;
  used_.swap(added_);
  drop(&added_);
  return true;
}

// The certificate of a name; one of its own comes before a wildcard. Null: there is none.
Ctx* TlsContext::find(std::string_view requested) const {
  std::string name(requested);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  size_t dot = name.find('.');
  std::string wild = dot == std::string::npos ? "" : "*" + name.substr(dot);
  Ctx* below = nullptr;
  for (const Pair& pair : used_) {
    for (const std::string& each : pair.names) {
      if (each == name) return pair.ctx;
      if (below == nullptr && !wild.empty() && each == wild) below = pair.ctx;
    }
  }
  return below;
}

TlsSession::TlsSession(TlsContext* context) : context_(context), ssl_(nullptr) {
  const Calls& ssl = *context->ssl;
  if (context->first() == nullptr) return;
  ssl_ = ssl.SSL_new(context->first());
  if (ssl_ == nullptr) return;
  Bio* bio = ssl.BIO_new(context->method_);
  ssl.BIO_set_data(bio, context);
  ssl.BIO_set_init(bio, 1);
  ssl.SSL_set_bio(ssl_, bio, bio);
  ssl.SSL_set_ex_data(ssl_, 0, context);
  ssl.SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() {
  if (ssl_ != nullptr) context_->ssl->SSL_free(ssl_);
}

size_t TlsSession::take(const uint8_t* bytes, size_t length, uint8_t* to) {
  const Calls& ssl = *context_->ssl;
  if (ssl_ == nullptr || failed) return failed = true, 0;
  if (!isUp && !hello_.take(bytes, length, !answered_ || ssl.SSL_version(ssl_) == kTls13)) {
    context_->out.append(kLengthAlert, sizeof(kLengthAlert) - 1);
    return failed = true, 0;
  }
  context_->in = bytes;
  context_->inLength = length;
  context_->newKeys = newKeys;
  begun = true;
  // The thread has one queue of errors, for sessions of Node as well: what is left in it would be taken for an error of the next of them.
  ErrorsCleared cleared(ssl);
  if (!isUp) {
    int step = ssl.SSL_do_handshake(ssl_);
    answered_ = answered_ || !context_->out.empty();
    isUp = step == 1;
    failed = !isUp && ssl.SSL_get_error(ssl_, step) != kErrorWantRead;
  }
  size_t filled = 0;
  while (isUp && !failed && !ends) {
    size_t got = 0;
    int step = ssl.SSL_read_ex(ssl_, to + filled, length + kRecordMax - filled, &got);
    filled += got;
    if (step == 1) continue;
    int error = ssl.SSL_get_error(ssl_, step);
    if (error == kErrorWantRead) break;
    ends = error == kErrorZeroReturn;
    failed = !ends;
  }
  context_->in = nullptr;
  context_->inLength = 0;
  newKeys = context_->newKeys;
  if (newKeys > kNewKeysMax) failed = true, filled = 0;
  return filled;
}

bool TlsSession::seal(const void* bytes, size_t length) {
  size_t taken = 0;
  if (!isUp || failed) return false;
  if (length == 0) return true;
  failed = context_->ssl->SSL_write_ex(ssl_, bytes, length, &taken) != 1 || taken != length;
  // Only what fails leaves errors behind.
  if (failed) context_->ssl->ERR_clear_error();
  return !failed;
}

void TlsSession::close() {
  if (!isUp || failed) return;
  ErrorsCleared cleared(*context_->ssl);
  context_->ssl->SSL_shutdown(ssl_);
}

}  // namespace server
