/**
 * The words of the interface. The specification writes neutral ones; the network in use has its own. Whatever writes or
 * reads a header or a path of ours takes its words from here.
 */
export interface Vocabulary {
  readonly name: 'neutral' | 'ar-io'
  /** First segment of our own paths, with a leading slash. */
  readonly pathPrefix: string
  /** Begins headers about this gateway and its bytes: `X-GATEWAY-`. */
  readonly gateway: string
  /** Begins headers about names: `X-NS-`. */
  readonly names: string
  /** Begins headers about chain facts: `X-Chain-`. */
  readonly chain: string
  /** What the Data-Item-Data-Offset header counts from: the start of the item, or that of the bundle around it. */
  readonly dataOffsetFrom: 'item' | 'bundle'
}

export const vocabularies: Readonly<Record<Vocabulary['name'], Vocabulary>> = {
  neutral: {
    name: 'neutral',
    pathPrefix: '/gateway',
    gateway: 'X-GATEWAY-',
    names: 'X-NS-',
    chain: 'X-Chain-',
    dataOffsetFrom: 'item',
  },
  'ar-io': {
    name: 'ar-io',
    pathPrefix: '/ar-io',
    gateway: 'X-AR-IO-',
    names: 'X-ArNS-',
    chain: 'X-Arweave-',
    dataOffsetFrom: 'bundle',
  },
}

/** Lower-case spellings of a request header `X-GATEWAY-<suffix>`: whoever asks may speak either vocabulary. */
export function spellings(suffix: string): readonly string[] {
  const lower = suffix.toLowerCase()
  return Object.values(vocabularies).map((words) => `${words.gateway.toLowerCase()}${lower}`)
}
