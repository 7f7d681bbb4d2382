import type { Config } from '../../config/read.js'

/** These sections of the settings, as `config/read.ts` has validated them. */
export type Settings<Section extends keyof Config> = Pick<Config, Section>

/** The sections that each kind of thread is started with. Secrets of the operator reach no thread that does not use them. */
const sections = {
  edge: [
    'server',
    'tls',
    'answers',
    'bands',
    'chunks',
    'forwarding',
    'indexing',
    'limits',
    'manifests',
    'names',
    'peers',
    'queries',
    'retrieval',
    'x402',
  ],
  admission: ['limits'],
  payment: [
    'server',
    'cluster',
    'services',
    'credits',
    'chains',
    'cards',
    'mail',
    'x402',
    'exclusions',
    'limits',
    'retrieval',
    'uploads',
  ],
  bands: ['server', 'bands', 'indexing', 'names', 'swarm'],
  cashier: ['server', 'x402', 'exclusions', 'chains', 'limits', 'names'],
  ingest: ['server', 'chunks', 'indexing', 'retrieval'],
  push: ['server', 'clickhouse', 'cluster', 'indexing'],
  query: ['server', 'clickhouse', 'indexing', 'queries', 'retrieval'],
  source: [
    'cluster',
    'server',
    'contentStore',
    'absence',
    'answers',
    'chunks',
    'manifests',
    'names',
    'peers',
    'retrieval',
    'rootLookup',
  ],
  swarm: ['server', 'bands', 'swarm'],
  upload: ['server', 'chunks', 'cluster', 'contentStore', 'uploads', 'indexing', 'limits', 'retrieval'],
} as const satisfies Readonly<Record<string, readonly (keyof Config)[]>>

export type ThreadKind = keyof typeof sections

/** The settings of one kind of thread. Plain: they are cloned into it. */
export type SettingsOf<Kind extends ThreadKind> = Settings<(typeof sections)[Kind][number]>

/** Cuts the settings to the sections of one kind of thread. */
export function settingsOf<Kind extends ThreadKind>(config: Config, kind: Kind): SettingsOf<Kind> {
  const names: readonly (keyof Config)[] = sections[kind]
  return Object.fromEntries(names.map((name) => [name, config[name]])) as unknown as SettingsOf<Kind>
}
