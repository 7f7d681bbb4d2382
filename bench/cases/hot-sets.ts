import { corpusOf } from '../corpus/corpus.js'
import { canBoundMemory } from '../kit/bounded-memory.js'
import type { Target } from '../load/load.js'
import { type HotCase, type HotSet, serveWide, wholeOf, widerCorpus } from './hot.js'
import {
  type Served,
  startWithAll,
  startWithLimits,
  startWithLittleMemory,
  startWithNginx,
} from './hot-servers.js'
import type { Scale } from './scale.js'

const everything = ({ corpus }: Served): Target[] => corpus.contents.map(wholeOf)

const zipf = 'zipf:0.9' as const
const manner = { cost: 'cpuUs', rate: 2000 } as const

const wideCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'wide: Zipf',
    group: 'wide',
    about: 'small contents (median 6 KiB, up to 256 KiB) by Zipf 0.9, from 64 kinds of clients',
    bar: 1.1,
    order: zipf,
    targets: everything,
  },
  {
    ...manner,
    name: 'wide: uniform',
    group: 'wide',
    about: 'the same contents, all equally often',
    bar: 0.9,
    order: 'uniform',
    targets: everything,
  },
  {
    ...manner,
    name: 'wide: 1 in 100 unknown',
    group: 'wide',
    about:
      'the same by Zipf 0.9; each hundredth request asks for an id that nobody has, never the same twice',
    order: zipf,
    unknown: 100,
    targets: everything,
  },
  {
    ...manner,
    name: 'wide: HEAD',
    group: 'wide',
    about: 'the same by Zipf 0.9, heads only',
    bar: 0.9,
    order: zipf,
    targets: (served) => everything(served).map((target) => ({ ...target, method: 'HEAD' as const })),
  },
  {
    ...manner,
    name: 'wide: 304',
    group: 'wide',
    about: 'the thousand most popular of them with the tag that the client has already',
    bar: 0.9,
    order: zipf,
    conditional: true,
    targets: everything,
  },
  {
    ...manner,
    name: 'manifests',
    group: 'wide',
    about: 'pages of manifests, /{manifest}/{path}, by Zipf 0.9',
    order: zipf,
    targets: ({ sites }) =>
      (sites?.all ?? []).flatMap(({ id, pages }) =>
        [...pages].map(([path, content]) => ({ ...wholeOf(content), path: `/${id}/${path}` })),
      ),
  },
  {
    ...manner,
    name: 'names',
    group: 'wide',
    about: 'the same pages by name, {name}.localhost/{path}',
    order: zipf,
    targets: ({ sites }) =>
      (sites?.all ?? []).flatMap(({ name, pages }) =>
        [...pages].map(([path, content]) => ({
          ...wholeOf(content),
          path: `/${path}`,
          lines: [`Host: ${name}.localhost`],
        })),
      ),
  },
]

const widerCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'wider: Zipf',
    group: 'wider',
    about:
      'many more contents of the same kind by Zipf 0.9: 200,000, with --full 1,000,000 of a third of the size',
    bar: 1.1,
    order: zipf,
    targets: everything,
  },
]

const threadsCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'two threads: Zipf',
    group: 'two threads',
    about: 'the small contents by Zipf 0.9 again, answered by two threads; nginx has two workers',
    bar: 1.05,
    order: zipf,
    targets: everything,
  },
]

const limitsCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'limits: Zipf',
    group: 'limits',
    about:
      'the small contents by Zipf 0.9 again, with the limits on clients and resources; the rival is this gateway without',
    bar: 0.95,
    order: zipf,
    targets: everything,
  },
]

const memoryCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'little memory: uniform',
    group: 'little memory',
    about:
      'many more contents, all equally often, where memory holds half of them: the disk answers the rest',
    bar: 0.9,
    order: 'uniform',
    targets: everything,
  },
]

const largeCases: readonly HotCase[] = [
  {
    ...manner,
    name: 'ranges',
    group: 'large',
    about: 'ranges of 64 KiB anywhere in large contents, uniform',
    bar: 1,
    order: 'uniform',
    rate: 1000,
    targets: (served) => everything(served).map((target) => ({ ...target, rangeBytes: 2 ** 16 })),
  },
]

const alone: readonly [name: string, sizeBytes: number, bar: number, rate: number][] = [
  ['1 KiB', 2 ** 10, 1.2, 4000],
  ['64 KiB', 2 ** 16, 1.1, 2000],
  ['1 MiB', 2 ** 20, 1.15, 400],
  ['100 MiB', 100 * 2 ** 20, 1.1, 5],
]

const aloneCases: readonly HotCase[] = alone.map(([name, sizeBytes, bar, rate]) => ({
  name: `one URL alone: ${name}`,
  group: 'one URL alone',
  about: `one content of ${name} and nothing else: every cache is hit, which no real traffic does`,
  cost: sizeBytes > 2 ** 20 ? 'cpuUsPerMb' : 'cpuUs',
  bar,
  order: 'uniform',
  rate,
  ...(sizeBytes > 2 ** 20 ? { connections: 4 } : {}),
  targets: (served) => everything(served).filter((target) => target.sizeBytes === sizeBytes),
}))

const serveWider = (scale: Scale): Served => ({ corpus: widerCorpus(scale) })

/** Sets in the order in which they run. */
export const hotSets: readonly HotSet[] = [
  { name: 'wide', serve: serveWide, start: startWithAll, cases: wideCases },
  { name: 'two threads', serve: serveWide, start: startWithNginx, threads: 2, cases: threadsCases },
  { name: 'limits', serve: serveWide, start: startWithLimits, cases: limitsCases },
  { name: 'wider', serve: serveWider, start: startWithAll, cases: widerCases },
  {
    name: 'little memory',
    serve: serveWider,
    start: startWithLittleMemory,
    obstacle: () => (canBoundMemory() ? undefined : 'the kernel lets us bound no memory'),
    cases: memoryCases,
  },
  {
    name: 'large',
    serve: ({ large: { count, sizeBytes } }) => ({
      corpus: corpusOf({ name: `large-${count}`, count, sizes: { law: 'listed', sizesBytes: [sizeBytes] } }),
    }),
    start: startWithAll,
    cases: largeCases,
  },
  {
    name: 'one URL alone',
    serve: () => {
      const sizesBytes = alone.map(([, sizeBytes]) => sizeBytes)
      return {
        corpus: corpusOf({ name: 'alone', count: alone.length, sizes: { law: 'listed', sizesBytes } }),
      }
    },
    start: startWithAll,
    cases: aloneCases,
  },
]
