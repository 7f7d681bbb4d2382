import { maybeUrls, whole } from './setting.js'

/** Gateways of the network that content is requested from, and believed only when it is proven. */
export const peers = {
  urls: maybeUrls({
    env: 'PEER_GATEWAYS_URLS',
    why: 'Gateways of the source ar-io-network. What they send is untrusted until it is proven.',
  }),
  candidatesMax: whole({
    env: 'PEER_CANDIDATE_COUNT',
    default: 5,
    min: 1,
    max: 100,
    why: 'Peers that get a request for one payload at most.',
  }),
  homesMax: whole({
    env: 'PEER_HASH_RING_HOME_SET_SIZE',
    default: 3,
    min: 0,
    max: 100,
    why: 'Of them, those that all gateways choose for the same id; the rest are chosen at random by weight.',
  }),
  hedgeMs: whole({
    env: 'PEER_HEDGE_DELAY_MS',
    default: 500,
    min: 1,
    max: 60_000,
    why: 'A second peer gets the request when the first sent nothing for so long.',
  }),
  hedgedMax: whole({
    env: 'PEER_MAX_HEDGED_REQUESTS',
    default: 3,
    min: 1,
    max: 100,
    why: 'Peers that get a request at once for one payload.',
  }),
  concurrentMax: whole({
    env: 'PEER_MAX_CONCURRENT_OUTBOUND',
    default: 10,
    min: 1,
    max: 1000,
    why: 'Answers under way from one peer, half of them for one client; it is passed over beyond that.',
  }),
  weightDelta: whole({
    env: 'WEIGHTED_PEERS_TEMPERATURE_DELTA',
    default: 2,
    min: 1,
    max: 50,
    why: 'What an answer adds to, or a failure takes from, the weight of a peer (1 to 100).',
  }),
}
