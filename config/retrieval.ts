import { foreignSources } from './foreign.js'
import { custom, flag, maybeText, maybeUrls, maybeWhole, sharedList, whole } from './setting.js'
import { readTrustedGateways, type TrustedGatewayEntry } from './trusted-gateways.js'

const sources = 'trusted-gateways, ar-io-network, chunks, chunks-offset-aware or tx-data'
const sourceName = /^(trusted-gateways|ar-io-network|chunks|chunks-offset-aware|tx-data)$/

/** Where bytes come from, and how long to wait for them. */
export const retrieval = {
  trustedGateways: custom<readonly TrustedGatewayEntry[] | undefined>({
    env: 'TRUSTED_GATEWAYS_URLS',
    allowed: 'JSON: {"https://host": priority} or {"https://host": {"priority": 1, "trusted": false}}',
    defaultText: '',
    default: undefined,
    read: readTrustedGateways,
    why: 'Gateways that content is requested from. None on devnet; turbo-gateway.com, then arweave.net (untrusted), on mainnet.',
  }),
  trustedGatewayUrl: maybeUrls({
    env: 'TRUSTED_GATEWAY_URL',
    why: 'Gateways that content is requested from, all trusted, in this order, before those of TRUSTED_GATEWAYS_URLS.',
  }),
  onDemandOrder: sharedList({
    foreign: foreignSources,
    mayBeEmpty: false,
    env: 'ON_DEMAND_RETRIEVAL_ORDER',
    default: ['trusted-gateways', 'ar-io-network', 'chunks-offset-aware', 'tx-data'],
    shape: sourceName,
    allowed: sources,
    why: 'Sources for a request, in order. ar-io-network is skipped without PEER_GATEWAYS_URLS.',
  }),
  backgroundOrder: sharedList({
    foreign: foreignSources,
    mayBeEmpty: false,
    env: 'BACKGROUND_RETRIEVAL_ORDER',
    default: ['chunks', 'chunks-offset-aware', 'tx-data'],
    shape: sourceName,
    allowed: sources,
    why: 'Sources of proven bytes where cached ones proved wrong. chunks brings transactions only.',
  }),
  gatewayTimeoutMs: whole({
    env: 'TRUSTED_GATEWAYS_REQUEST_TIMEOUT_MS',
    default: 10_000,
    min: 100,
    max: 600_000,
    why: "Until the head of a gateway's answer. Bodies have a stall timer only: a slow download is healthy.",
  }),
  extraAuthorities: maybeText({
    env: 'NODE_EXTRA_CA_CERTS',
    allowed: 'a file',
    why: 'Certificates (PEM) of authorities beside those of Node, for gateways and nodes with certificates of a private one.',
  }),
  streamStallMs: whole({
    env: 'STREAM_STALL_TIMEOUT_MS',
    default: 30_000,
    min: 100,
    max: 600_000,
    why: 'A source that sends no byte for so long is given up.',
  }),
  chunkReadAhead: whole({
    env: 'CHUNK_REQUEST_CONCURRENCY',
    default: 50,
    min: 1,
    max: 1000,
    why: 'Chunks of 256 KiB requested from nodes at once, all transfers together: 12.5 MiB in flight.',
  }),
  verifies: flag({
    env: 'ENABLE_BACKGROUND_DATA_VERIFICATION',
    default: true,
    why: 'Verify cached content against the chain; without it nothing that a gateway sent is ever called verified.',
  }),
  verifyEverySeconds: whole({
    env: 'BACKGROUND_DATA_VERIFICATION_INTERVAL_SECONDS',
    default: 60,
    min: 1,
    max: 86_400,
    why: 'Between two looks into the catalog for what is left to prove; what is cached now is proven soon.',
  }),
  verifyRetries: whole({
    env: 'MAX_VERIFICATION_RETRIES',
    default: 24,
    min: 0,
    max: 1000,
    why: 'Further looks at a root that could not be read yet, after 2 s and twice as long each time, up to six hours.',
  }),
  verifyPercent: whole({
    env: 'VERIFICATION_PROCESSOR_PERCENT',
    default: 5,
    min: 1,
    max: 100,
    why: 'Verification takes so much of the processor time that all else takes, and 20 ms a second at least.',
  }),
  verifyRequestsPerSecond: whole({
    env: 'VERIFICATION_NODE_REQUESTS_PER_SECOND',
    default: 20,
    min: 1,
    max: 10_000,
    why: 'Requests to nodes for verification; those of readers are not counted.',
  }),
  verifyWaitingMax: whole({
    env: 'VERIFICATION_WAITING_MAX',
    default: 200_000,
    min: 100,
    max: 100_000_000,
    why: 'Contents that wait to be verified with what is known of their roots, some 500 bytes of disk each.',
  }),
  cacheMaxBytes: whole({
    env: 'CONTIGUOUS_DATA_CACHE_MAX_BYTES',
    default: 100 * 2 ** 30,
    min: 2 ** 20,
    max: Number.MAX_SAFE_INTEGER,
    why: 'Bytes of content kept on disk, at most three quarters of it; the least recently used is removed first.',
  }),
  segmentBytes: whole({
    env: 'CONTENT_SEGMENT_BYTES',
    default: 268_435_456,
    min: 0,
    max: 2 ** 30,
    why: 'Content up to 1 MiB lies in files of this size (smaller where little is kept). 0: each in a file of its own.',
  }),
  cacheMaxAgeSeconds: maybeWhole({
    env: 'CONTIGUOUS_DATA_CACHE_CLEANUP_THRESHOLD',
    min: 1,
    max: 10 ** 10,
    why: 'Content unused for so many seconds is dropped; unset: never by age.',
  }),
  fillMaxBytes: whole({
    env: 'BACKGROUND_CACHE_RANGE_MAX_SIZE',
    default: 0,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    why: 'Content up to this size is fetched whole, and cached, after a range of it was read from a source. 0: none is.',
  }),
  fillConcurrency: whole({
    env: 'BACKGROUND_CACHE_RANGE_CONCURRENCY',
    default: 1,
    min: 1,
    max: 64,
    why: 'So much of it at once; 64 more contents wait for their turn.',
  }),
  fetchesMax: whole({
    env: 'FETCHES_MAX',
    default: 512,
    min: 1,
    max: 65_536,
    why: 'Transfers from sources at once; more are answered 503.',
  }),
}
