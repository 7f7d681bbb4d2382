import { absence } from './absence.js'
import { answers } from './answers.js'
import { bands } from './bands.js'
import { cardFaults, cards } from './cards.js'
import { chains } from './chains.js'
import { chunks } from './chunks.js'
import { clickhouse, clickhouseFaults } from './clickhouse.js'
import { client } from './client.js'
import { cluster, clusterFaults } from './cluster.js'
import { contentStore, contentStoreFaults } from './content-store.js'
import { credits } from './credits.js'
import { exclusions } from './exclusions.js'
import { foreign } from './foreign.js'
import { forwarding } from './forwarding.js'
import { indexing } from './indexing.js'
import { limits } from './limits.js'
import { mail, mailFaults } from './mail.js'
import { manifests } from './manifests.js'
import { moderation } from './moderation.js'
import { nameContradictions, names } from './names.js'
import { peers } from './peers.js'
import { samePorts } from './ports.js'
import { queries } from './queries.js'
import { retrieval } from './retrieval.js'
import { rootLookup } from './root-lookup.js'
import { consolePortOf, server } from './server.js'
import { runningPorts, runningServices, services } from './services.js'
import type { Setting } from './setting.js'
import { readSettingsFile } from './settings-file.js'
import { swarm } from './swarm.js'
import { tls, tlsFaults } from './tls.js'
import { unknownNames } from './unknown-names.js'
import { uploadFaults, uploads } from './uploads.js'
import { webhooks } from './webhooks.js'
import { x402, x402Faults } from './x402.js'

/** Every table, by the part of the program it belongs to. */
const tables = {
  server,
  tls,
  retrieval,
  contentStore,
  cluster,
  clickhouse,
  absence,
  peers,
  chunks,
  answers,
  indexing,
  rootLookup,
  webhooks,
  names,
  moderation,
  x402,
  exclusions,
  limits,
  bands,
  swarm,
  forwarding,
  manifests,
  queries,
  services,
  credits,
  chains,
  cards,
  mail,
  client,
  uploads,
}

type Values<Table> = { readonly [Name in keyof Table]: Table[Name] extends Setting<infer T> ? T : never }

/** All settings as values, frozen: the only form in which the program sees its configuration. */
export type Config = { readonly [Name in keyof typeof tables]: Values<(typeof tables)[Name]> }

/** The environment with what SETTINGS_FILE says over it; `wrong`: why that cannot be read. */
function surroundingsOf(environment: Environment): {
  readonly all: Environment
  readonly wrong: readonly string[]
} {
  const path = environment.SETTINGS_FILE?.trim() ?? ''
  if (path === '') return { all: environment, wrong: [] }
  const read = readSettingsFile(path)
  if ('wrong' in read) return { all: environment, wrong: [read.wrong] }
  return { all: { ...environment, ...read.values }, wrong: [] }
}

export type SettingsTable = keyof typeof tables

/** The tables, for listings in groups. */
export function listTables(): Readonly<Record<SettingsTable, Readonly<Record<string, Setting<unknown>>>>> {
  return tables as unknown as Readonly<Record<SettingsTable, Readonly<Record<string, Setting<unknown>>>>>
}

/** Every setting, for listings. */
export function listSettings(): readonly Setting<unknown>[] {
  return Object.values(tables).flatMap((table) => Object.values(table) as Setting<unknown>[])
}

const credentials = /\/\/[^/@\s]*@/g

/** What the environment sets, by name; of secrets only that they are set, and addresses without their credentials. */
export function settingsInUse(surroundings: Environment = process.env): Readonly<Record<string, string>> {
  const { all } = surroundingsOf(surroundings)
  return Object.fromEntries(
    listSettings().flatMap(({ env, secret }) => {
      const text = all[env]
      return text === undefined ? [] : [[env, secret ? 'set' : text.replace(credentials, '//...@')]]
    }),
  )
}

/** Settings in the environment that mean nothing here, and words of settings, each with the reason: for the log. */
export function foreignSettings(
  surroundings: Readonly<Record<string, string | undefined>> = process.env,
): { readonly setting: string; readonly why: string }[] {
  const { all } = surroundingsOf(surroundings)
  const whole = [...foreign].flatMap(([setting, why]) => {
    const isSet = (all[setting]?.trim() ?? '') !== ''
    return isSet ? [{ setting, why }] : []
  })
  const words = listSettings().flatMap(({ env, ignored }) => {
    const words = ignored?.(all[env]?.trim() ?? '') ?? []
    return words.map(({ word, why }) => ({ setting: `${env}: ${word}`, why }))
  })
  return [...whole, ...words]
}

function contradictions(config: Config): string[] {
  const {
    server: given,
    indexing: { startHeight, stopHeight },
  } = config
  const wrong: string[] = []
  if (startHeight !== undefined && stopHeight !== undefined && stopHeight < startHeight) {
    wrong.push('STOP_HEIGHT must not be below START_HEIGHT')
  }
  if (given.observerKeypairPath !== undefined && given.observerPrivateKey !== undefined) {
    wrong.push('OBSERVER_KEYPAIR_PATH and OBSERVER_PRIVATE_KEY exclude each other: set one')
  }
  if (given.devnetReplayPath !== undefined && given.network !== 'devnet') {
    wrong.push('DEVNET_REPLAY_PATH: needs NETWORK=devnet')
  }
  if (given.network === 'devnet' && given.port !== 0 && given.port === given.devnetPort) {
    wrong.push('PORT and DEVNET_PORT must differ')
  }
  const consolePort = consolePortOf(given)
  if (given.consoleEnabled && consolePort !== 0 && given.port !== 0) {
    if (consolePort === given.port)
      wrong.push('CONSOLE_PORT and PORT must differ: content of others is served on PORT')
    if (consolePort > 65_535) wrong.push('CONSOLE_PORT: PORT + 10 is no port, so it must be set')
    if (given.network === 'devnet' && consolePort === given.devnetPort) {
      wrong.push('CONSOLE_PORT and DEVNET_PORT must differ')
    }
  }
  const taken = {
    PORT: given.port,
    ...(given.consoleEnabled ? { CONSOLE_PORT: consolePort } : {}),
    ...(given.network === 'devnet' ? { DEVNET_PORT: given.devnetPort } : {}),
  }
  const ofServices = runningPorts(config.services, given.network, given.port)
  wrong.push(...samePorts(ofServices, taken))
  const running = runningServices(config.services, given.network)
  wrong.push(
    ...tlsFaults(config.tls, {
      taken: { ...taken, ...ofServices },
      running: new Set([
        ...running,
        ...(given.consoleEnabled && running.has('gateway') ? (['console'] as const) : []),
      ]),
      isDevnet: given.network === 'devnet',
      rootHosts: config.names.rootHosts,
    }),
  )
  wrong.push(...cardFaults(config.cards), ...mailFaults(config.mail))
  wrong.push(...uploadFaults(config.uploads, config.contentStore.kind !== 'none'))
  wrong.push(...contentStoreFaults(config.contentStore))
  wrong.push(...clusterFaults(config.cluster))
  wrong.push(...clickhouseFaults(config.clickhouse))
  const { subscriptions, registry } = config.swarm
  if (registry === undefined && subscriptions.some((one) => 'publisher' in one)) {
    wrong.push('INDEX_SUBSCRIPTIONS: a wallet needs INDEX_REGISTRY')
  }
  wrong.push(...nameContradictions(config.names, given.network === 'devnet'))
  wrong.push(...x402Faults(config.x402, config.limits.enabled))
  return wrong
}

type Environment = Readonly<Record<string, string | undefined>>

/** The values of one table, frozen. What is malformed is added to `wrong`, and its name to `malformed`. */
function valuesOf<Table extends Readonly<Record<string, Setting<unknown>>>>(
  table: Table,
  environment: Environment,
  wrong: string[],
  malformed: Set<string>,
): Values<Table> {
  const readOne = (setting: Setting<unknown>): unknown => {
    const text = environment[setting.env]?.trim()
    if (text === undefined || text === '') return setting.fallback
    const parsed = setting.read(text)
    if ('value' in parsed) return parsed.value
    malformed.add(setting.env)
    wrong.push(`${setting.env}: ${setting.secret ? `must be ${setting.allowed}` : parsed.wrong}`)
    return setting.fallback
  }
  const values = Object.entries(table).map(([key, setting]) => [key, readOne(setting)])
  return Object.freeze(Object.fromEntries(values)) as Values<Table>
}

/**
 * What the client's commands take from the environment, or every error in it. Settings of the services are not looked at: a
 * `PORT` or a `GATEWAY_URL` of another program must not stop an upload.
 */
export function readClientConfig(surroundings: Environment = process.env): Values<typeof client> | string[] {
  const wrong: string[] = []
  const values = valuesOf(client, surroundings, wrong, new Set())
  return wrong.length === 0 ? values : wrong
}

/** The user's folders by the XDG Base Directory Specification, where the environment names them. */
export function userBaseFolders(
  surroundings: Environment = process.env,
): Readonly<Record<'config' | 'state', string | undefined>> {
  return { config: surroundings.XDG_CONFIG_HOME, state: surroundings.XDG_STATE_HOME }
}

/** Nodes that are trusted here, for a command that compares with one; undefined where the setting is absent or malformed. */
export function trustedNodes(surroundings: Environment = process.env): readonly string[] | undefined {
  const { trustedNodeUrls } = server
  return valuesOf({ trustedNodeUrls }, surroundings, [], new Set()).trustedNodeUrls
}

/** The folder of the program that a command is about; other settings are not looked at. */
export function dataPathOf(surroundings: Environment = process.env): string {
  const { all } = surroundingsOf(surroundings)
  const { dataPath } = server
  return valuesOf({ dataPath }, all, [], new Set()).dataPath
}

/** What `sluice start --https` sets: HTTPS beside the gateway, without a certificate of the operator's one made here. */
export function httpsSettings(
  surroundings: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string>> {
  const { all } = surroundingsOf(surroundings)
  const { PORT, TLS_PORT, TLS_SELF_SIGNED } = all
  const sources = ['TLS_CERT_FILE', 'TLS_CERTS_PATH', 'TLS_ACME']
  const hasCertificate = sources.some((name) => all[name] !== undefined)
  return {
    ...(TLS_PORT === undefined ? { TLS_PORT: PORT === '0' ? '0' : '3443' } : {}),
    ...(hasCertificate || TLS_SELF_SIGNED !== undefined ? {} : { TLS_SELF_SIGNED: 'true' }),
  }
}

/**
 * Reads the configuration out of the environment, `given` (from a command line) going over it. Empty texts count as
 * unset. Either every value, or every error there is, one a line; the errors never hold the text of a secret.
 */
export function readConfig(
  given: Readonly<Record<string, string>> = {},
  surroundings: Readonly<Record<string, string | undefined>> = process.env,
): Config | string[] {
  const { all, wrong: unread } = surroundingsOf(surroundings)
  const environment = { ...all, ...given }
  const wrong = [
    ...unread,
    ...unknownNames(
      environment,
      listSettings().map(({ env }) => env),
    ),
  ]
  const malformed = new Set<string>()
  const frozen = Object.entries(tables).map(([name, table]) => [
    name,
    valuesOf(table, environment, wrong, malformed),
  ])
  const config = Object.freeze(Object.fromEntries(frozen)) as Config
  // A setting that cannot be read is there: that another one needs it would be stated in vain.
  const isGiven = (fault: string): boolean => malformed.has(/ needs (\w+)$/.exec(fault)?.[1] ?? '')
  wrong.push(...contradictions(config).filter((fault) => !isGiven(fault)))
  return wrong.length === 0 ? config : wrong
}
