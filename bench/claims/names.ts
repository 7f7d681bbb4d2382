import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { idOfBytes } from '../../src/format/id.js'
import type { HostOptions } from '../../src/gateway/gateway-parts.js'
import { Hosts } from '../../src/names/host.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import { namesDefaults } from '../../src/names/names-defaults.js'
import type { Name, NameRecord } from '../../src/names/names-port.js'
import { openNames } from '../../src/names/open-names.js'
import { HostRules } from '../../src/routes/host-rules.js'
import { corpusOf } from '../corpus/corpus.js'
import { sitesOf } from '../corpus/sites.js'
import { workFolder } from '../kit/folders.js'
import { median } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import { makeLoad, type Target } from '../load/load.js'
import { fillWith, startGateway } from '../rivals/gateway.js'

const help = `names: what it costs to answer by name

  --names N    names remembered (10000)
  --rounds N   rounds of load, by id and by name in turns (3)
  --seconds N  of load for each (2)
`

/** Bytes on the heap that are in use. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

const hostOptions: HostOptions = {
  rootHosts: ['localhost'],
  protocol: 'http',
  ownPort: 3000,
  sandboxBareHosts: false,
  apexNames: [],
  apexMaxSeconds: 3600,
  enforceUndernameLimit: true,
}

/** Microseconds from Host header to resolution, for cached names in random order. */
async function lookups(count: number): Promise<void> {
  mkdirSync(workFolder, { recursive: true })
  const folder = mkdtempSync(join(workFolder, 'names-'))
  const all = Array.from({ length: count }, (_, at) => parseName(`name-${at}`)).filter(
    (one) => one !== undefined,
  )
  const id = idOfBytes(Buffer.alloc(32, 1))
  const registry = new LocalRegistry(folder)
  registry.set(all.map((name): readonly [Name, NameRecord] => [name, { id, ttlSeconds: 86_400 }]))
  await registry.close()
  const { absentMs, failedMs, refreshMs, flightsMax, guard } = namesDefaults
  const plain = { resolversAtOnce: 1, preferred: [], preferredBases: new Set<string>() }
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const cache = {
    absentMs,
    failedMs,
    refreshMs,
    flightsMax,
    staleMs: 1e9,
    namesMax: count,
    fallbackMs: 250,
    ...plain,
  }
  const before = heapBytes()
  const open = await openNames(
    { registryPath: folder, order: ['local'], timeoutMs: 1, lastTimeoutMs: 1, guard, cache },
    systemClock,
    meters,
    silentLog,
  )
  for (const name of all) await open.names.resolve(name, { forward: true, hops: 0, via: [] }, '')
  say(`memory: ${Math.round((heapBytes() - before) / count)} bytes a name on each thread`)
  const rules = new HostRules(new Hosts(['localhost']), hostOptions, '/gateway', () => false)
  for (const [what, hosts] of [
    ['one host', 1],
    ['500 hosts', 500],
    [`${count} hosts`, count],
  ] as const) {
    const requests = Array.from({ length: hosts }, (_, at) => {
      const host = `name-${at}.localhost:3000`
      return { method: 'GET', path: '/', query: '', header: () => host } as unknown as Parameters<
        HostRules['rule']
      >[0]
    })
    const rounds = Array.from({ length: 5 }, () => {
      const turns = 300_000
      let found = 0
      // Processor time: other programs on this machine do not count.
      const start = process.cpuUsage()
      for (let turn = 0; turn < turns; turn += 1) {
        const ruled = rules.rule(requests[(turn * 7919) % hosts]!, undefined)
        if (
          ruled?.kind === 'name' &&
          ruled.name !== 'malformed' &&
          open.names.known(ruled.name) !== undefined
        )
          found += 1
      }
      if (found !== turns) throw new Error(`${turns - found} names were not remembered`)
      const { user, system } = process.cpuUsage(start)
      return (user + system) / turns
    })
    say(`host to resolution, ${what}: ${median(rounds).toFixed(2)} us`)
  }
  await open.close()
  rmSync(folder, { recursive: true })
}

/** The same content by id, and by the name of a manifest that has it: processor time of the whole program a request, in turns. */
async function throughput(rounds: number, seconds: number): Promise<void> {
  const corpus = corpusOf({ name: 'names', count: 1, sizes: { law: 'listed', sizesBytes: [1024] } })
  const sites = sitesOf(corpus, 1, 1)
  const [content] = corpus.contents
  const [site] = sites.all
  const [path] = site?.pages.keys() ?? []
  if (content === undefined || site === undefined) throw new Error('nothing to ask for')
  const gateway = await startGateway({ name: 'names', fill: (seeding) => fillWith(seeding, corpus, sites) })
  const ask = async (target: Target): Promise<number> => {
    const watch = new Stopwatch(gateway.pid)
    const { answered } = await makeLoad(
      { targets: [{ ...target, sizeBytes: 1024 }] },
      { port: gateway.port, seconds },
    )
    return (watch.seconds() / answered) * 1e6
  }
  const byId = { path: `/${content.id}` }
  const byName = { path: `/${path}`, lines: [`Host: ${site.name}.localhost`] }
  const costs: { id: number; name: number }[] = []
  try {
    for (const target of [byId, byName]) await ask(target)
    for (let round = 0; round < rounds; round += 1)
      costs.push({ id: await ask(byId), name: await ask(byName) })
  } finally {
    await gateway.stop()
  }
  const [id, name] = [median(costs.map((cost) => cost.id)), median(costs.map((cost) => cost.name))]
  say(
    `1 KiB by id ${id.toFixed(1)} us of processor time, by name ${name.toFixed(1)} us: ${(name - id).toFixed(1)} us more`,
  )
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    names: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '2' },
  },
})
if (values.help === true) say(help)
else {
  await lookups(Number(values.names))
  await throughput(Number(values.rounds), Number(values.seconds))
}
