import { availableParallelism } from 'node:os'
import { choice, flag, maybeText, maybeUrls, maybeWhole, reloadable, secret, text, whole } from './setting.js'

/** Where the program listens, keeps its state, and who it is. */
export const server = {
  network: choice({
    env: 'NETWORK',
    default: 'devnet',
    of: ['devnet', 'mainnet'],
    why: 'devnet: an embedded base-layer node, nothing outside this machine. mainnet: the public network.',
  }),
  port: whole({
    env: 'PORT',
    default: 3000,
    min: 0,
    max: 65_535,
    why: 'Where the gateway listens; 0: any free port.',
  }),
  devnetPort: whole({
    env: 'DEVNET_PORT',
    default: 1984,
    min: 0,
    max: 65_535,
    why: 'Where the embedded base-layer node listens; 0: any free port.',
  }),
  listenAddress: maybeText({
    env: 'LISTEN_ADDRESS',
    allowed: 'an IPv4 or IPv6 address of this machine',
    shape: /^[0-9a-fA-F.:]+$/,
    why: 'Address to listen on: 127.0.0.1 on devnet, every address (0.0.0.0) on mainnet.',
  }),
  consoleEnabled: flag({
    env: 'CONSOLE_ENABLED',
    default: true,
    why: "Serves the operator's page, on an address of its own where no content of others is.",
  }),
  consolePort: maybeWhole({
    env: 'CONSOLE_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the console listens; 0: any free port. Unset: PORT + 10, any free one where PORT is 0.',
  }),
  consoleAddress: text({
    env: 'CONSOLE_ADDRESS',
    default: '127.0.0.1',
    allowed: 'an IPv4 or IPv6 address of this machine',
    shape: /^[0-9a-fA-F.:]+$/,
    why: 'Address that the console listens on: this machine only, as it takes the admin key. For others: CONSOLE_TLS_PORT.',
  }),
  settingsFile: maybeText({
    env: 'SETTINGS_FILE',
    allowed: 'a file',
    why: 'Lines NAME=value, which come before the environment. sluice reload reads it again.',
  }),
  dataPath: text({
    env: 'DATA_PATH',
    default: './data',
    allowed: 'a folder',
    why: 'All state lies below it.',
  }),
  logLevel: reloadable(
    choice({
      env: 'LOG_LEVEL',
      default: 'info',
      of: ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'],
      why: 'error: a request was not answered rightly; warn: we recovered; info: start and stop; debug: a line a request.',
    }),
  ),
  vocabulary: choice({
    env: 'INTERFACE_VOCABULARY',
    default: 'neutral',
    of: ['neutral', 'ar-io'],
    why: 'Words of paths and headers: /gateway and X-GATEWAY-, or those that existing clients of the network know.',
  }),
  edgeThreads: whole({
    env: 'EDGE_THREADS',
    default: Math.min(availableParallelism(), 64),
    min: 1,
    max: 64,
    why: 'Threads that serve sockets, all on one port; one a core.',
  }),
  watchdogSeconds: whole({
    env: 'WATCHDOG_SECONDS',
    default: 10,
    min: 2,
    max: 3600,
    why: 'A thread without a heartbeat for so long is reported; one that serves sockets is replaced.',
  }),
  idleMemorySeconds: whole({
    env: 'IDLE_MEMORY_SECONDS',
    default: 8,
    min: 0,
    max: 86_400,
    why: 'Seconds without work before threads give memory back the first time; later eight times as long; 0: never.',
  }),
  requestsMax: whole({
    env: 'GATEWAY_FLOWS_MAX',
    default: 4096,
    min: 1,
    max: 65_536,
    why: 'Requests in flight per edge thread; more are answered 503. 4,096 slow clients hold about 4 MiB of state.',
  }),
  stallMs: whole({
    env: 'GATEWAY_STALL_MS',
    default: 30_000,
    min: 100,
    max: 600_000,
    why: 'A client that reads no byte for so long is disconnected.',
  }),
  bodyBytesPerSecondMin: whole({
    env: 'GATEWAY_BODY_MIN_BYTES_PER_SECOND',
    default: 4096,
    min: 1,
    max: 2 ** 30,
    why: 'Bodies of requests that come more slowly for as long as GATEWAY_STALL_MS are given up (408), also of uploads.',
  }),
  noticeMs: whole({
    env: 'SHUTDOWN_NOTICE_MS',
    default: 0,
    min: 0,
    max: 600_000,
    why: 'So long after SIGTERM health answers say 503 while all is served, for load balancers; a second signal ends it.',
  }),
  drainMs: whole({
    env: 'SHUTDOWN_DRAIN_MS',
    default: 10_000,
    min: 0,
    max: 600_000,
    why: 'How long requests in flight may take to finish after SIGTERM and SHUTDOWN_NOTICE_MS.',
  }),
  wallet: maybeText({ env: 'AR_IO_WALLET', allowed: 'a wallet address', why: 'Shown in the info answer.' }),
  bundlers: maybeUrls({
    env: 'BUNDLER_URLS',
    why: 'Upload services that the info answer names.',
  }),
  release: text({
    env: 'AR_IO_NODE_RELEASE',
    default: 'sluice-0.1.0',
    allowed: 'a release name',
    shape: /^[\w.-]{1,64}$/,
    why: 'Release named in the info answer and to other gateways.',
  }),
  devnetBlockMs: whole({
    env: 'DEVNET_BLOCK_MS',
    default: 2000,
    min: 0,
    max: 3_600_000,
    why: 'Time between blocks of the embedded node, longer while nobody needs any; 0 mines on demand only (/mine).',
  }),
  devnetReplayPath: maybeText({
    env: 'DEVNET_REPLAY_PATH',
    allowed: 'a folder of node JSON',
    why: 'The embedded node serves these recorded answers instead of a chain of its own.',
  }),
  devnetSeed: flag({
    env: 'DEVNET_SEED',
    default: true,
    why: 'Puts a small site, a bundle, an image and a 20 MB file onto the embedded chain at the first start.',
  }),
  trustedNodeUrls: maybeUrls({
    env: 'TRUSTED_NODE_URL',
    why: 'Base-layer nodes, used in order of health: the embedded one on devnet, https://arweave.net on mainnet.',
  }),
  httpsigEnabled: flag({
    env: 'HTTPSIG_ENABLED',
    default: true,
    why: 'Signs answers with trust headers (RFC 9421).',
  }),
  httpsigBindRequest: flag({
    env: 'HTTPSIG_BIND_REQUEST',
    default: true,
    why: 'Puts method and path of the request under the signature.',
  }),
  httpsigReuseSeconds: whole({
    env: 'HTTPSIG_REUSE_SECONDS',
    default: 60,
    min: 0,
    max: 3600,
    why: 'So old may a signature be when it goes out once more with the same words: a new one costs more than its answer.',
  }),
  httpsigKeyFile: maybeText({
    env: 'HTTPSIG_KEY_FILE',
    allowed: 'a file',
    why: 'Ed25519 key (PKCS#8 PEM), created with mode 0600 if missing; <DATA_PATH>/keys/httpsig.pem.',
  }),
  observerKeypairPath: maybeText({
    env: 'OBSERVER_KEYPAIR_PATH',
    allowed: 'a file',
    why: 'JSON array of 64 bytes: signs instead of the key file, so that the signer can be found in the registry.',
  }),
  observerPrivateKey: secret(
    maybeText({
      env: 'OBSERVER_PRIVATE_KEY',
      allowed: 'a 64-byte secret in base58',
      shape: /^[1-9A-HJ-NP-Za-km-z]{64,90}$/,
      why: 'The same as text; excludes OBSERVER_KEYPAIR_PATH.',
    }),
  ),
}

/**
 * Where the console listens; 0: on any free port. It is not the port behind PORT where none is set: the upload and the payment
 * service have those.
 */
export function consolePortOf(given: {
  readonly port: number
  readonly consolePort: number | undefined
}): number {
  return given.consolePort ?? (given.port === 0 ? 0 : given.port + 10)
}
