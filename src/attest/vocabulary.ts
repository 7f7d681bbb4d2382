/**
 * Names of headers and paths. The specification has neutral ones; the network in use has its own. All code that
 * writes or reads our headers or paths takes their names from here.
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
  /**
   * Whether text without a charset is declared as UTF-8: tools that compare gateways of that network compare the whole
   * value.
   */
  readonly textIsUtf8: boolean
}

export const vocabularies: Readonly<Record<Vocabulary['name'], Vocabulary>> = {
  neutral: {
    name: 'neutral',
    pathPrefix: '/gateway',
    gateway: 'X-GATEWAY-',
    names: 'X-NS-',
    chain: 'X-Chain-',
    dataOffsetFrom: 'item',
    textIsUtf8: false,
  },
  'ar-io': {
    name: 'ar-io',
    pathPrefix: '/ar-io',
    gateway: 'X-AR-IO-',
    names: 'X-ArNS-',
    chain: 'X-Arweave-',
    dataOffsetFrom: 'bundle',
    textIsUtf8: true,
  },
}

/** Types that the network's gateways say to be UTF-8, by how they begin and in this letter case only, as those gateways do. */
const textTypes = /^(?:text\/|application\/(?:javascript|json))/

/** A media type as the Content-Type of an answer has it. */
export function contentTypeIn({ textIsUtf8 }: Pick<Vocabulary, 'textIsUtf8'>, type: string): string {
  const isBare = textIsUtf8 && textTypes.test(type) && !/;\s*charset\s*=/i.test(type)
  return isBare ? `${type}; charset=utf-8` : type
}

/** Lower-case spellings of a request header `X-GATEWAY-<suffix>`: clients may use either vocabulary. */
export function spellings(suffix: string): readonly string[] {
  const lower = suffix.toLowerCase()
  return Object.values(vocabularies).map((words) => `${words.gateway.toLowerCase()}${lower}`)
}
