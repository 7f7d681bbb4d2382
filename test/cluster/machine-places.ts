/** Three machines as far as they are three: on one loopback, or with a network, a disk and a clock for each. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { storeSettings } from '../engines/radosgw.js'
import { startRelay } from '../engines/relay.js'
import { scratch } from '../scratch.js'
import { loadSettings } from './cluster-load.js'
import { type Engines, type Faults, faultsOfWay } from './engine-faults.js'
import { type Host, startNetwork } from './hosts.js'
import { LastingMachine } from './lasting-machine.js'
import { faultsOfCable, faultsOfClock, faultsOfDisk, faultsOfSplit, ownDisk } from './machine-faults.js'

const names = ['one', 'two', 'three'] as const
const engineNames = ['PostgreSQL', 'S3', 'Redis', 'the chain'] as const
type EngineName = (typeof engineNames)[number]

export interface Places {
  readonly machines: readonly LastingMachine[]
  /** What can happen to their surroundings. */
  readonly faults: Faults
}

/** Ports of the engines on this machine's loopback. */
function portsOf({ database, objects, redis, chain }: Engines): Readonly<Record<EngineName, number>> {
  const [PostgreSQL, S3] = [Number(new URL(database.url).port), Number(new URL(objects.endpoint).port)]
  return { PostgreSQL, S3, Redis: redis.port, 'the chain': chain }
}

/** Settings by which a machine finds the engines at the addresses. */
function settingsOf(engines: Engines, at: (engine: EngineName) => string): Record<string, string> {
  const ports = portsOf(engines)
  const place = (engine: EngineName): string => `${at(engine)}:${ports[engine]}`
  const cluster = `postgres://sluice@${place('PostgreSQL')}/cluster`
  return {
    ...loadSettings,
    ...storeSettings({ ...engines.objects, endpoint: `http://${place('S3')}` }, engines.bucket),
    TRUSTED_NODE_URL: `http://${place('the chain')}`,
    SERVICES: 'gateway,upload,payment',
    CLUSTER_DATABASE_URL: cluster,
    PAYMENT_DATABASE_URL: cluster,
    CLUSTER_REDIS_URL: `redis://${place('Redis')}`,
    CLUSTER_TAKEOVER_SECONDS: '30',
    UPLOAD_BUNDLE_WAIT_SECONDS: '2',
    SHUTDOWN_DRAIN_MS: '1000',
  }
}

/** On loopback: nothing happens to their surroundings. */
export function nearPlaces(t: Test, engines: Engines, count: number = names.length): Places {
  const settings = settingsOf(engines, () => '127.0.0.1')
  const named = Array.from({ length: count }, (_, at) => names[at] ?? `machine-${at + 1}`)
  const machines = named.map((name) => new LastingMachine(t, { name, settings, folder: scratch(name) }))
  return { machines, faults: {} }
}

/** Rate limits in Redis that no client of a test reaches. */
const limits = (redis: string): Record<string, string> => ({
  ENABLE_RATE_LIMITER: 'true',
  RATE_LIMITER_TYPE: 'redis',
  RATE_LIMITER_REDIS_ENDPOINT: redis,
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '1000000000',
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '1000000000',
})

const diskMegabytes = 600

interface Ground {
  readonly t: Test
  readonly hosts: readonly Host[]
  readonly engines: ReadonlyMap<string, string>
  readonly settings: Readonly<Record<string, string>>
}

function farPlace(
  name: string,
  host: Host,
  { t, hosts, engines, settings }: Ground,
): [LastingMachine, Faults] {
  const [folder, clock] = [ownDisk(diskMegabytes), join(scratch('clock'), 'off')]
  writeFileSync(clock, '0')
  const others = hosts.filter((one) => one !== host)
  const neighbours = others.map(({ address }) => `http://${address}:3000`)
  const machine = new LastingMachine(t, {
    name,
    folder,
    settings: {
      ...settings,
      ...limits(settings.CLUSTER_REDIS_URL ?? ''),
      LISTEN_ADDRESS: host.address,
      PORT: '3000',
      PEER_GATEWAYS_URLS: neighbours.join(','),
      TEST_CLOCK_FILE: clock,
    },
    words: ['--import', new URL('./shifted-clock.js', import.meta.url).href],
    under: host.under,
  })
  const cable = faultsOfCable(name, host, engines, others)
  return [machine, { ...cable, ...faultsOfDisk(machine), ...faultsOfClock(machine, clock) }]
}

/** With a network, a disk and a clock for each: needs Linux, iproute2 and root. Throws where it is not permitted. */
export async function farPlaces(t: Test, engines: Engines): Promise<Places> {
  const ports = portsOf(engines)
  const { hosts, engines: places } = startNetwork(t, names.length, engineNames.length)
  const addresses = new Map<string, string>(engineNames.map((engine, at) => [engine, places[at] ?? '']))
  const settings = settingsOf(engines, (engine) => addresses.get(engine) ?? '')
  let faults: Faults = faultsOfSplit(hosts, addresses)
  for (const engine of engineNames) {
    const relay = await startRelay(addresses.get(engine) ?? '', ports[engine], ports[engine])
    faults = { ...faults, ...faultsOfWay(engine, relay) }
  }
  const machines: LastingMachine[] = []
  for (const [at, host] of hosts.entries()) {
    const [machine, ofPlace] = farPlace(names[at] ?? '', host, { t, hosts, settings, engines: addresses })
    machines.push(machine)
    faults = { ...faults, ...ofPlace }
  }
  return { machines, faults }
}
