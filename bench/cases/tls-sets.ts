import { corpusOf } from '../corpus/corpus.js'
import { startTls, startTlsFront } from '../rivals/tls-servers.js'
import { type HotCase, type HotSet, serveWide, wholeOf } from './hot.js'
import type { Served } from './hot-servers.js'
import type { Scale } from './scale.js'

const versions = ['1.2', '1.3'] as const

const everything = ({ corpus }: Served) => corpus.contents.map(wholeOf)

/** A case of each version of TLS. */
function both(of: (tls: (typeof versions)[number]) => Omit<HotCase, 'group' | 'tls'>): HotCase[] {
  return versions.map((tls) => {
    const { name, ...rest } = of(tls)
    return { ...rest, name: `TLS ${tls}: ${name}`, group: 'TLS', tls }
  })
}

const manner = { cost: 'cpuUs', order: 'zipf:0.9', rate: 1000, targets: everything } as const

const wideCases = [
  ...both(() => ({
    ...manner,
    name: 'Zipf',
    about: 'the small contents by Zipf 0.9 over TLS with AES-128-GCM, keep-alive; nginx has them as files',
    bar: 0.95,
  })),
  ...both(() => ({
    ...manner,
    name: 'full handshake',
    about: 'the same, one request a connection, each from another address: a full handshake (P-256, X25519)',
    bar: 0.85,
    rate: 200,
    handshakes: 'full',
  })),
  ...both(() => ({
    ...manner,
    name: 'resumed handshake',
    about:
      'the same, one request a connection, each from another address: each resumes a session by its ticket',
    bar: 0.9,
    rate: 200,
    handshakes: 'resumed',
  })),
]

const frontCases = both(() => ({
  ...manner,
  name: 'nginx in front',
  about:
    'the small contents by Zipf 0.9 over TLS; the rival is this gateway without TLS behind nginx with it',
  bar: 2.3,
}))

const bodies: readonly [name: string, sizeBytes: number, rate: number][] = [
  ['1 MiB', 2 ** 20, 200],
  ['100 MiB', 100 * 2 ** 20, 5],
]

const bodyCases = bodies.flatMap(([name, , rate], at) =>
  both(() => ({
    name,
    about: `contents of ${name} over TLS with AES-128-GCM`,
    cost: 'cpuUsPerMb',
    bar: 1.3,
    order: 'uniform',
    rate,
    connections: 4,
    targets: (served) => everything(served).slice(at, at + 1),
  })),
)

const serveBodies = (scale: Scale): Served => {
  const sizesBytes = bodies.map(([, sizeBytes]) => Math.min(sizeBytes, scale.judges ? Infinity : 2 ** 20))
  return { corpus: corpusOf({ name: `tls-${scale.name}`, count: 2, sizes: { law: 'listed', sizesBytes } }) }
}

/** Sets over TLS, in the order in which they run. */
export const tlsSets: readonly HotSet[] = [
  {
    name: 'TLS',
    serve: serveWide,
    start: (served, { threads }) => startTls(served, threads),
    cases: wideCases,
  },
  {
    name: 'TLS in front',
    serve: serveWide,
    start: (served, { threads }) => startTlsFront(served, threads),
    cases: frontCases,
  },
  {
    name: 'TLS bodies',
    serve: serveBodies,
    start: (served, { threads }) => startTls(served, threads),
    cases: bodyCases,
  },
]
