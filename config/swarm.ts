import { choice, custom, flag, list, maybeText, type Parsed, readUrl, whole } from './setting.js'

const addressShape = /^(\d{1,3}(\.\d{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$/

/**
 * `url`: without a trailing slash, fragment or query. A wallet is base58; a key base58, or `ed25519:` and 43 characters of
 * base64url as `/gateway/info` shows it.
 */
export type NamedPublisher = { readonly url: string } & (
  | { readonly keyId: string }
  | { readonly publisher: string }
)

/** ADDRESS#KEY, or ADDRESS#wallet:WALLET. */
export function readPublisher(text: string): Parsed<NamedPublisher> {
  const found =
    /^(https?:\/\/[^#?@\s]+)#(?:(wallet:)?([1-9A-HJ-NP-Za-km-z]{32,44})|(ed25519:[\w-]{42}[AEIMQUYcgkosw048]))$/.exec(
      text,
    )
  const [, address = '', isWallet, who = '', shownKey] = found ?? []
  if (!URL.canParse(address)) return { wrong: text }
  const url = new URL(address).href.replace(/\/$/, '')
  return { value: isWallet === undefined ? { url, keyId: shownKey ?? who } : { url, publisher: who } }
}

export interface NamedNode {
  /** A name or an address. */
  readonly host: string
  readonly port: number
}

function readNode(text: string): NamedNode | undefined {
  const [, v6, name = v6, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  return name !== undefined && port >= 1 && port <= 65_535 ? { host: name, port } : undefined
}

function readTracker(text: string): Parsed<string> {
  if (!text.startsWith('udp:')) return readUrl(text)
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url?.username === '' && url.password === '' && url.hash === ''
  return url !== undefined && isPlain && url.hostname !== '' && Number(url.port) > 0
    ? { value: url.href }
    : { wrong: `is not udp://HOST:PORT: ${text}` }
}

/** Bands by BitTorrent, and bands of other gateways. */
export const swarm = {
  seed: flag({
    env: 'INDEX_SEED',
    default: false,
    why: 'Offers our bands as torrents too: a seeder on INDEX_TORRENT_PORT, a tracker beside the publication.',
  }),
  torrentPort: whole({
    env: 'INDEX_TORRENT_PORT',
    default: 6881,
    min: 0,
    max: 65_535,
    why: 'TCP port of the seeder, beside that of HTTP; 0 takes a free one.',
  }),
  torrentAddresses: list({
    env: 'INDEX_TORRENT_ADDRESSES',
    default: [],
    shape: addressShape,
    allowed: 'IP addresses, comma between',
    why: 'Where peers reach the seeder. Without: the address that a client used for the gateway, if it was no name.',
  }),
  peersMax: whole({
    env: 'INDEX_TORRENT_PEERS_MAX',
    default: 100,
    min: 1,
    max: 2000,
    why: 'Connections of the seeder at once; each takes up to 0.5 MiB.',
  }),
  uploadBytesPerSecond: whole({
    env: 'INDEX_UPLOAD_LIMIT',
    default: 10_000_000,
    min: 0,
    max: 100_000_000_000,
    why: 'Bytes a second that the seeder sends, to all peers together; 0: no limit.',
  }),
  uploadBytesPerDay: whole({
    env: 'INDEX_UPLOAD_DAILY_LIMIT',
    default: 100_000_000_000,
    min: 0,
    max: 1_000_000_000_000_000,
    why: 'Bytes a day (UTC) that the seeder sends; 0: no limit.',
  }),
  encryption: choice({
    env: 'INDEX_TORRENT_ENCRYPTION',
    default: 'accept',
    of: ['off', 'accept', 'prefer', 'require'],
    why: 'Encrypted connections: none; from peers; our own too, if they can; no others. It hides, and secures nothing.',
  }),
  trackers: custom<readonly string[]>({
    env: 'INDEX_TRACKERS',
    allowed: 'http, https or udp addresses, comma between; udp with a port',
    defaultText: '',
    default: [],
    read: (text) => {
      const read = text.split(',').map((part) => readTracker(part.trim()))
      const wrong = read.flatMap((one) => ('wrong' in one ? [one.wrong] : []))
      if (wrong.length > 0) return { wrong: wrong.join('; ') }
      return { value: read.flatMap((one) => ('value' in one ? [one.value] : [])) }
    },
    why: 'Trackers elsewhere where our bands are announced, and those that we fetch requested; none unless set.',
  }),
  dhtNodes: custom<readonly NamedNode[]>({
    env: 'INDEX_DHT_NODES',
    allowed: 'HOST:PORT, comma between',
    defaultText: '',
    default: [],
    read: (text) => {
      const parts = text.split(',').map((part) => part.trim())
      const found = parts.map(readNode)
      const wrong = parts.filter((_, index) => found[index] === undefined)
      if (wrong.length > 0) return { wrong: `has entries that are not HOST:PORT: ${wrong.join(' ')}` }
      return { value: found.filter((node) => node !== undefined) }
    },
    why: 'Nodes of the BitTorrent DHT to begin with: our bands are announced there then, as to trackers. None unless set.',
  }),
  subscriptions: custom<readonly NamedPublisher[]>({
    env: 'INDEX_SUBSCRIPTIONS',
    allowed:
      'ADDRESS#KEY or ADDRESS#wallet:WALLET, comma between: a gateway, and who signs (base58, or keyId of /gateway/info)',
    defaultText: '',
    default: [],
    read: (text) => {
      const read = text.split(',').map((part) => readPublisher(part.trim()))
      const wrong = read.flatMap((one) => ('wrong' in one ? [one.wrong] : []))
      if (wrong.length > 0) return { wrong: `has entries that are not ADDRESS#KEY: ${wrong.join(' ')}` }
      return { value: read.flatMap((one) => ('value' in one ? [one.value] : [])) }
    },
    why: 'Gateways whose bands are fetched and looked into. An address without a path means its usual one.',
  }),
  registry: maybeText({
    env: 'INDEX_REGISTRY',
    shape: /^\S+$/,
    allowed: 'a path, or an http(s) address',
    why: 'JSON as gateways answer /peers with: which key (observerAddress) signs for a wallet. For #wallet: above.',
  }),
  subscribedKinds: list({
    env: 'INDEX_SUBSCRIPTION_KINDS',
    default: ['cdb64-root-tx'],
    shape: /^[a-z0-9-]{1,64}$/,
    allowed: 'kinds of bands, comma between',
    why: 'Kinds of bands that are fetched.',
  }),
  pollSeconds: whole({
    env: 'INDEX_SUBSCRIPTION_POLL_SECONDS',
    default: 300,
    min: 1,
    max: 86_400,
    why: 'Seconds between two looks at a publication.',
  }),
  graceSeconds: whole({
    env: 'INDEX_SUBSCRIPTION_GRACE_SECONDS',
    default: 300,
    min: 0,
    max: 31_536_000,
    why: 'Seconds that a fetched band is kept after its publisher replaced it.',
  }),
  seedFetched: flag({
    env: 'INDEX_SUBSCRIPTION_SEED',
    default: true,
    why: 'With INDEX_SEED, what is here of bands of others is seeded on, and announced to the trackers of their publishers.',
  }),
  fetchedBytesMax: whole({
    env: 'INDEX_SUBSCRIPTION_MAX_BYTES',
    default: 50 * 2 ** 30,
    min: 0,
    max: 2 ** 50,
    why: 'Bytes of bands of others on disk, those on their way counted.',
  }),
  bandsAtOnce: whole({
    env: 'INDEX_SUBSCRIPTION_DOWNLOADS',
    default: 4,
    min: 1,
    max: 64,
    why: 'Bands fetched at once.',
  }),
  webSeconds: whole({
    env: 'INDEX_SUBSCRIPTION_WEB_SECONDS',
    default: 30,
    min: 0,
    max: 86_400,
    why: 'Seconds without a byte from peers after which a band is requested over HTTP as well.',
  }),
}
