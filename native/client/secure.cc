// See secure.h. Constants are those of OpenSSL 3's public headers (ssl.h, tls1.h, x509_vfy.h, x509v3.h).
#include "secure.h"

#include <algorithm>
#include <cstring>

namespace client {

using namespace openssl;

namespace {

constexpr int kSentAndReceived = 3;
constexpr int kVerifyPeer = 1, kCtrlServerName = 55, kNameOfHost = 0;
constexpr long kCacheOfClient = 0x0001, kCacheElsewhere = 0x0200, kVerifyOk = 0;
constexpr unsigned kNoPartialWildcards = 0x4;
// Sessions that are kept for a server: as many as connections that may begin together.
constexpr size_t kSessionsMax = 8;
// "http/1.1" as ALPN has it (RFC 7301).
constexpr unsigned char kAlpn[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

int noPassword(char*, int, int, void*) { return 0; }

}  // namespace

const TlsCalls* tlsCalls() {
  static const TlsCalls found;
  return found.all ? &found : nullptr;
}

Resumable::~Resumable() {
  for (Session* session : kept_) tlsCalls()->SSL_SESSION_free(session);
}

void Resumable::keep(Session* session) {
  kept_.push_back(session);
  if (kept_.size() <= kSessionsMax) return;
  tlsCalls()->SSL_SESSION_free(kept_.front());
  kept_.erase(kept_.begin());
}

void Resumable::begin(Ssl* ssl) {
  if (kept_.empty()) return;
  Session* session = kept_.back();
  tlsCalls()->SSL_set_session(ssl, session);
  if (tlsCalls()->SSL_SESSION_get_protocol_version(session) != kTls13) return;
  kept_.pop_back();
  tlsCalls()->SSL_SESSION_free(session);
}

int Trust::writeBio(Bio* bio, const char* bytes, int length) {
  if (length > 0) static_cast<Trust*>(tlsCalls()->BIO_get_data(bio))->out_.append(bytes, static_cast<size_t>(length));
  return length;
}

int Trust::readBio(Bio* bio, char* to, int length) {
  const TlsCalls& ssl = *tlsCalls();
  Trust* trust = static_cast<Trust*>(ssl.BIO_get_data(bio));
  ssl.BIO_clear_flags(bio, kBioRetryAny);
  size_t got = std::min(trust->inLength_, static_cast<size_t>(std::max(length, 0)));
  if (got == 0) {
    ssl.BIO_set_flags(bio, kBioRetryRead);
    return -1;
  }
  memcpy(to, trust->in_, got);
  trust->in_ += got;
  trust->inLength_ -= got;
  return static_cast<int>(got);
}

Trust::Trust(const TlsCalls* calls) : ssl(calls), ctx_(calls->SSL_CTX_new(calls->TLS_client_method())) {
  ErrorsCleared cleared(*ssl);
  method_ = ssl->BIO_meth_new(kBioTypeSourceSink | 101, "window");
  ssl->BIO_meth_set_write(method_, writeBio);
  ssl->BIO_meth_set_read(method_, readBio);
  ssl->BIO_meth_set_ctrl(method_, controlBio);
  if (ctx_ == nullptr) return;
  ssl->SSL_CTX_set_options(ctx_, kOpNoRenegotiation | kOpNoCompression);
  ssl->SSL_CTX_ctrl(ctx_, kCtrlMode, kModeReleaseBuffers | kModeMovingBuffer, nullptr);
  ssl->SSL_CTX_ctrl(ctx_, kCtrlMinVersion, kTls12, nullptr);
  ssl->SSL_CTX_ctrl(ctx_, kCtrlSessCacheMode, kCacheOfClient | kCacheElsewhere, nullptr);
  ssl->SSL_CTX_sess_set_new_cb(ctx_, Secure::keepSession);
  ssl->SSL_CTX_set_verify(ctx_, kVerifyPeer, nullptr);
  ssl->SSL_CTX_set_alpn_protos(ctx_, kAlpn, sizeof(kAlpn));
}

// The method is left behind: sessions of OpenSSL may point to it, and there is one a client.
Trust::~Trust() {
  if (ctx_ != nullptr) ssl->SSL_CTX_free(ctx_);
}

bool Trust::offer(const std::string& suites, const std::string& ciphers) {
  ErrorsCleared cleared(*ssl);
  return ctx_ != nullptr && (suites.empty() || ssl->SSL_CTX_set_ciphersuites(ctx_, suites.c_str()) == 1) &&
         (ciphers.empty() || ssl->SSL_CTX_set_cipher_list(ctx_, ciphers.c_str()) == 1);
}

size_t Trust::add(const std::string& pem) {
  if (ctx_ == nullptr) return 0;
  ErrorsCleared cleared(*ssl);
  Store* store = ssl->SSL_CTX_get_cert_store(ctx_);
  Bio* bio = ssl->BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  size_t count = 0;
  for (X509* one; (one = ssl->PEM_read_bio_X509(bio, nullptr, noPassword, nullptr)) != nullptr; count += 1) {
    // One that is there already is none that fails.
    ssl->X509_STORE_add_cert(store, one);
    ssl->X509_free(one);
  }
  ssl->BIO_free(bio);
  return count;
}

Secure::Secure(Trust* trust, Resumable* resumable, const std::string& host, bool isAddress)
    : trust_(trust), resumable_(resumable), ssl_(nullptr) {
  const TlsCalls& ssl = *trust->ssl;
  ErrorsCleared cleared(ssl);
  if (trust->ctx_ != nullptr) ssl_ = ssl.SSL_new(trust->ctx_);
  if (ssl_ == nullptr) {
    fail();
    return;
  }
  Bio* bio = ssl.BIO_new(trust->method_);
  ssl.BIO_set_data(bio, trust);
  ssl.BIO_set_init(bio, 1);
  ssl.SSL_set_bio(ssl_, bio, bio);
  ssl.SSL_set_ex_data(ssl_, 0, this);
  ssl.SSL_set_connect_state(ssl_);
  VerifyParam* param = ssl.SSL_get0_param(ssl_);
  ssl.X509_VERIFY_PARAM_set_hostflags(param, kNoPartialWildcards);
  bool isNamed = isAddress ? ssl.X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1
                           : ssl.SSL_set1_host(ssl_, host.c_str()) == 1 &&
                                 ssl.SSL_ctrl(ssl_, kCtrlServerName, kNameOfHost, const_cast<char*>(host.c_str())) == 1;
  // Without a name any certificate would do.
  if (isNamed) resumable->begin(ssl_);
  else fail();
}

Secure::~Secure() {
  if (ssl_ == nullptr) return;
  // OpenSSL would not resume the session of a connection that ended in another way, which most do.
  trust_->ssl->SSL_set_shutdown(ssl_, kSentAndReceived);
  trust_->ssl->SSL_free(ssl_);
}

int Secure::keepSession(Ssl* ssl, Session* session) {
  Secure* secure = static_cast<Secure*>(tlsCalls()->SSL_get_ex_data(ssl, 0));
  secure->resumable_->keep(session);
  // It is ours from now on.
  return 1;
}

void Secure::fail() {
  const TlsCalls& ssl = *trust_->ssl;
  failed = true;
  long verified = ssl_ == nullptr ? kVerifyOk : ssl.SSL_get_verify_result(ssl_);
  if (verified != kVerifyOk) {
    reason = std::string("its certificate is not valid: ") + ssl.X509_verify_cert_error_string(verified);
    return;
  }
  char text[256] = "";
  unsigned long code = ssl.ERR_get_error();
  if (code != 0) ssl.ERR_error_string_n(code, text, sizeof(text));
  reason = std::string("TLS failed") + (code == 0 ? "" : ": ") + text;
}

void Secure::handshake() {
  const TlsCalls& ssl = *trust_->ssl;
  int step = ssl.SSL_do_handshake(ssl_);
  isUp = step == 1;
  if (!isUp && ssl.SSL_get_error(ssl_, step) != kErrorWantRead) fail();
}

size_t Secure::take(const char* bytes, size_t length, char* to, size_t room) {
  const TlsCalls& ssl = *trust_->ssl;
  if (failed) return 0;
  trust_->in_ = bytes;
  trust_->inLength_ = length;
  ErrorsCleared cleared(ssl);
  if (!isUp) handshake();
  size_t filled = 0;
  while (isUp && !failed && !ends && filled < room) {
    size_t got = 0;
    int step = ssl.SSL_read_ex(ssl_, to + filled, room - filled, &got);
    filled += got;
    if (step == 1) continue;
    int error = ssl.SSL_get_error(ssl_, step);
    if (error == kErrorWantRead) break;
    if (error == kErrorZeroReturn) ends = true;
    else fail();
  }
  trust_->in_ = nullptr;
  trust_->inLength_ = 0;
  // Also the alert that says why it failed.
  out += trust_->out_;
  trust_->out_.clear();
  return filled;
}

void Secure::seal(const char* bytes, size_t length) {
  const TlsCalls& ssl = *trust_->ssl;
  if (failed || !isUp) return;
  ErrorsCleared cleared(ssl);
  size_t taken = 0;
  if (ssl.SSL_write_ex(ssl_, bytes, length, &taken) != 1 || taken != length) fail();
  out += trust_->out_;
  trust_->out_.clear();
}

void Secure::close() {
  if (failed || !isUp) return;
  ErrorsCleared cleared(*trust_->ssl);
  trust_->ssl->SSL_shutdown(ssl_);
  out += trust_->out_;
  trust_->out_.clear();
}

}  // namespace client
