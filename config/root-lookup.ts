import { foreignRootLookups } from './foreign.js'
import { custom, sharedList, whole } from './setting.js'
import { readTrustedGateways, type TrustedGatewayEntry } from './trusted-gateways.js'

/** Who locates an item that nothing here knows. */
export const rootLookup = {
  order: sharedList({
    foreign: foreignRootLookups,
    mayBeEmpty: true,
    env: 'ROOT_TX_LOOKUP_ORDER',
    default: ['db', 'cdb', 'gateways'],
    shape: /^(db|cdb|gateways)$/,
    allowed: 'db, cdb or gateways',
    why: 'Without gateways in it no other gateway gets such requests. Index and bands are always looked at first.',
  }),
  gateways: custom<readonly TrustedGatewayEntry[] | undefined>({
    env: 'GATEWAYS_ROOT_TX_URLS',
    allowed: 'JSON: {"https://host": priority}',
    defaultText: '',
    default: undefined,
    read: readTrustedGateways,
    why: 'Gateways that locate items. None on devnet; turbo-gateway.com on mainnet. Their answers are proven.',
  }),
  burst: whole({
    env: 'GATEWAYS_ROOT_TX_RATE_LIMIT_BURST_SIZE',
    default: 5,
    min: 1,
    max: 10_000,
    why: 'Items searched at one gateway in a burst.',
  }),
  perMinute: whole({
    env: 'GATEWAYS_ROOT_TX_RATE_LIMIT_PER_MINUTE',
    default: 6,
    min: 1,
    max: 100_000,
    why: 'Items searched at one gateway on average: a flood of requests for unknown ids must not become a flood there.',
  }),
  rememberedMax: whole({
    env: 'ROOT_TX_CACHE_MAX_SIZE',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    why: 'Answers remembered, some 200 bytes each; also that nobody knows.',
  }),
  rememberedMs: whole({
    env: 'ROOT_TX_CACHE_TTL_MS',
    default: 300_000,
    min: 1000,
    max: 86_400_000,
    why: 'How long they are believed.',
  }),
}
