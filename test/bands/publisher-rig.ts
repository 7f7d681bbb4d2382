import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../src/actor/clock.js'
import type { SigningKey } from '../../src/attest/keys.js'
import { signPublication } from '../../src/bands/document.js'
import { describeTorrent } from '../../src/bands/measure-torrent.js'
import type { Band, BandKind, HeightRange } from '../../src/bands/publication.js'
import { encodeBase58 } from '../../src/format/base58.js'
import { infohashesOf, type Torrent, torrentBytes } from '../../src/torrent/torrent.js'
import { type Announce, Tracker, trackerDefaults } from '../../src/torrent/tracker.js'
import { sha256Hex } from '../torrent/swarm-rig.js'

/** A kind of bands that are right when they hold no file `bad`. */
export const plainKind: BandKind = {
  kind: 'plain',
  index: 'plain-index',
  describe: async () => ({ files: [], supersedes: [] }),
  check: async (folder) => {
    const isBad = readFileSync(join(folder, 'a')).subarray(0, 3).toString() === 'bad'
    return isBad ? { refused: 'malformed', fault: 'upstream', message: 'a bad band' } : undefined
  },
}

export interface Listed {
  readonly id: string
  readonly files: Readonly<Record<string, Uint8Array>>
  readonly torrent?: Torrent
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly heightRange?: HeightRange
}

export function newKey(): { keyId: string; key: SigningKey } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const keyId = encodeBase58(raw)
  return { keyId, key: { privateKey, publicKey, solanaAddress: keyId } as unknown as SigningKey }
}

/** A minimal gateway that publishes what a test gives it; the paths are those of the real one. */
export class TestPublisher {
  sequence = 1
  /** What is answered instead of what should be, by path below `/gateway/indexes`. */
  readonly lies = new Map<string, Buffer>()
  readonly requested: string[] = []
  /** Answers instead of it, by path below `/gateway/indexes`; false: it answers itself. */
  special: (path: string, response: ServerResponse) => boolean = () => false
  /** Ports that were announced to the tracker. */
  readonly ports: number[] = []
  seederPort = 0
  #bands: readonly Listed[] = []
  #document: Buffer = Buffer.alloc(0)
  #previous: string | null = null
  readonly #tracker = new Tracker({ ...trackerDefaults, announcesPerMinute: 1000 }, systemClock)
  readonly #server: Server

  constructor(
    private readonly index = { name: plainKind.index, kind: plainKind.kind },
    readonly signing = newKey(),
  ) {
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://x')
      const path = url.pathname.replace('/gateway/indexes', '')
      this.requested.push(path)
      if (this.special(path, response)) return
      const bytes = this.lies.get(path) ?? this.#answer(path, (request.url ?? '').split('?')[1] ?? '')
      if (bytes === undefined) {
        response.writeHead(404).end('{}')
        return
      }
      const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '')
      if (range === null) response.end(bytes)
      else {
        const [from, to] = [Number(range[1]), Number(range[2])]
        const headers = { 'Content-Range': `bytes ${from}-${to}/${bytes.length}` }
        response.writeHead(206, headers).end(bytes.subarray(from, to + 1))
      }
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/gateway`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  publish(bands: readonly Listed[], change: Readonly<Record<string, unknown>> = {}): Buffer {
    this.#bands = bands
    const listed: Band[] = bands.map(({ id, files, torrent, metadata, heightRange }) => ({
      id,
      files: Object.entries(files).map(([name, bytes]) => ({
        name,
        size: bytes.length,
        sha256: sha256Hex(bytes),
      })),
      ...(torrent === undefined ? {} : { torrent: describeTorrent(torrent, '/gateway') }),
      ...(metadata === undefined ? {} : { metadata }),
      ...(heightRange === undefined ? {} : { heightRange }),
    }))
    const unsigned = {
      version: 1,
      publisher: this.signing.keyId,
      sequence: this.sequence,
      previousManifestSha256: this.#previous,
      issuedAt: new Date().toISOString(),
      expiresAt: new Date(systemClock.now() + 3_600_000).toISOString(),
      indexes: [{ ...this.index, bands: listed }],
      ...change,
    } as const
    this.#document = signPublication(unsigned, this.signing.key)
    this.#previous = sha256Hex(this.#document)
    this.sequence += 1
    const torrents = bands.flatMap(({ torrent }) => (torrent === undefined ? [] : [torrent]))
    this.#tracker.offer(torrents.flatMap(infohashesOf))
    return this.#document
  }

  #answer(path: string, query: string): Buffer | undefined {
    if (path === '') return this.#document
    if (path === '/announce') {
      const announce: Announce = { query, address: '127.0.0.1' }
      this.ports.push(Number(new URLSearchParams(query).get('port')))
      const own = this.seederPort === 0 ? [] : [{ host: '127.0.0.1', port: this.seederPort }]
      return this.#tracker.announce(announce, own)
    }
    for (const { id, files, torrent } of this.#bands) {
      if (torrent !== undefined && path === `/torrents/${torrent.infohashV1.toString('hex')}.torrent`) {
        return torrentBytes(torrent)
      }
      for (const [name, bytes] of Object.entries(files)) {
        const isIt =
          path === `/${this.index.name}/${id}/${name}` || path === `/webseed/${torrent?.name}/${name}`
        if (isIt) return Buffer.from(bytes)
      }
    }
    return undefined
  }
}
