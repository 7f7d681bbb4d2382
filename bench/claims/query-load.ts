import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { corpusOf } from '../corpus/corpus.js'
import { appTag, Chain, halfTag, messagesOf, rareTag } from '../index/chain.js'
import { bound } from '../kit/child.js'
import { say } from '../kit/say.js'
import { makeLoad, type Outcome } from '../load/load.js'
import { fillWith, offline, startGateway } from '../rivals/gateway.js'

const help = `query-load: hot GETs of /raw beside one client that asks /graphql for as much as it can

  --items N        items of the index (60000)
  --rate N         hot requests a second, open loop (1000)
  --connections N  of the client that asks queries (8)
  --seconds N      of each slice (1)
  --slices N       pairs of slices for each attack (8)
  --edges N        edge threads (2)
  --only NAME      one attack

Slices alternate: hot requests alone, then beside the attack, so that what else the machine does meets both. What else it does can
only add: shown is the least of the slices. Exit code 1 where a ratio of p99 is above 2.
`
const ratioMax = 2
const clientProgram = fileURLToPath(new URL('../load/query-client.js', import.meta.url))

/** An attack: the body of each of its requests. */
type Attack = readonly [name: string, body: unknown]

const filter = (name: string, values: string, rest = ''): string =>
  `{name: ${JSON.stringify(name)}, values: ${values}${rest}}`
const rows =
  'pageInfo { hasNextPage endCursor } edges { cursor node { id tags { name value } owner { address } } }'
const aliased = (count: number, root: string): string =>
  Array.from({ length: count }, (_, at) => `a${at}: ${root}`).join(' ')

/** So many selections of transactions. */
const lists = (count: number, args: string, fields = rows): string =>
  aliased(count, `transactions(${args}) { ${fields} }`)

function attacks(): Attack[] {
  const v = Array.from({ length: 1000 }, (_, at) => `absent-${at}`)
  const withValues = (body: string): object => ({
    query: `query ($v: [String!]!) { ${body} }`,
    variables: { v },
  })
  const absent = filter('Type', '$v')
  const wild = filter('Unix-Time', '["1*"]', ', match: WILDCARD')
  const half = filter(halfTag.name, `["${halfTag.value}"]`)
  const rare = filter(rareTag.name, `["${rareTag.value}"]`)
  const app = filter(appTag(0).name, `["${appTag(0).value}", "${appTag(1).value}"]`, ', op: NEQ')
  const schema = '__schema { types { name fields { name args { name } } } }'
  const plain = (body: string): object => ({ query: `{ ${body} }` })
  return [
    [
      'absent values, out of bounds, batch',
      Array(3).fill(withValues(lists(50, `tags: [${absent.repeat(20)}]`))),
    ],
    ['absent values, in bounds', withValues(lists(2, `tags: [${absent}]`))],
    ['wildcards', plain(lists(40, `first: 100, tags: [${wild}]`))],
    ['count', plain(lists(50, `tags: [${half} ${wild}]`, 'count'))],
    ['first: 1000', plain(lists(20, 'first: 1000'))],
    ['first: 1000, one', plain(lists(1, 'first: 1000'))],
    ['empty intersections', plain(lists(40, `tags: [${half} ${rare} ${app}], ingested_at: {max: 1}`))],
    ['words to parse', Array(10).fill(plain('a '.repeat(9000)))],
    ['introspection', Array(10).fill(plain(aliased(50, schema)))],
  ]
}

/** A client in a program of its own that asks the same again and again, until `end` is called. */
function looping(port: number, connections: number, body: unknown) {
  const child = spawn(process.execPath, [clientProgram, String(port), String(connections)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  bound(child)
  child.stdin.end(JSON.stringify(body))
  const printed = text(child.stdout)
  const end = (): Promise<string> => {
    child.kill('SIGTERM')
    return printed
  }
  return { end }
}

async function index(dataPath: string, items: number): Promise<void> {
  const path = join(dataPath, 'catalog')
  const keeper = new CatalogKeeper({ path, touchEveryMs: 60_000 }, new Generations(), systemClock)
  for (const block of new Chain({ items, itemsPerBundle: 500, bundlesPerBlock: 4, seed: 9 }).blocks()) {
    await Promise.all(messagesOf(block).map((message) => keeper.handle(message)))
  }
  await keeper.close()
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '60000' },
      rate: { type: 'string', default: '1000' },
      connections: { type: 'string', default: '8' },
      seconds: { type: 'string', default: '1' },
      slices: { type: 'string', default: '8' },
      edges: { type: 'string', default: '2' },
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
    } as const,
  })
  if (values.help) return say(help)
  const [items, rate, connections] = [values.items, values.rate, values.connections].map(Number) as [
    number,
    number,
    number,
  ]
  const [seconds, slices, edges] = [values.seconds, values.slices, values.edges].map(Number) as [
    number,
    number,
    number,
  ]
  const corpus = corpusOf({ name: 'queries', count: 1, sizes: { law: 'listed', sizesBytes: [1024] } })
  const [content] = corpus.contents
  if (content === undefined) throw new Error('nothing to ask for')
  const gateway = await startGateway({
    name: 'queries',
    threads: edges,
    settings: offline,
    fill: (seeding) => fillWith(seeding, corpus),
    prepare: (dataPath) => index(dataPath, items),
  })
  const hot = (): Promise<Outcome> =>
    makeLoad(
      { targets: [{ path: `/raw/${content.id}`, sizeBytes: 1024 }] },
      { port: gateway.port, connections: 16, seconds, rate, isPrompt: true },
    )
  await hot()
  let isMissed = false
  say(`${'us, hot /raw'.padEnd(42)}   alone p50    p99   beside p50    p99   ratio p50    p99`)
  for (const [name, body] of attacks()) {
    if (values.only !== undefined && !name.startsWith(values.only)) continue
    const alone: Outcome[] = []
    const beside: Outcome[] = []
    let answered = ''
    for (let slice = 0; slice < slices; slice += 1) {
      alone.push(await hot())
      const client = looping(gateway.port, connections, body)
      beside.push(await hot())
      answered = await client.end()
    }
    const of = (list: readonly Outcome[], key: 'p50Us' | 'p99Us'): number =>
      Math.min(...list.map((one) => one[key]))
    const figures = [
      of(alone, 'p50Us'),
      of(alone, 'p99Us'),
      of(beside, 'p50Us'),
      of(beside, 'p99Us'),
    ] as const
    const ratios = [figures[2] / figures[0], figures[3] / figures[1]] as const
    isMissed ||= ratios[1] > ratioMax
    const cells = [...figures.map(String), ...ratios.map((ratio) => ratio.toFixed(2))]
    say(`${name.padEnd(42)}${cells.map((cell) => cell.padStart(10)).join('')}   ${answered}`)
  }
  await gateway.stop()
  if (isMissed) process.exitCode = 1
}

await main()
