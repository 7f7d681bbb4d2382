import { listTables, type SettingsTable } from './read.js'
import type { Setting } from './setting.js'

/** What each table is about, for people. */
const titles: Readonly<Record<SettingsTable, string>> = {
  server: 'The program: network, listener, folders, keys, log',
  tls: 'HTTPS',
  services: 'Services beside the gateway',
  retrieval: 'Sources of content, and the cache',
  contentStore: 'Object store below the disk (S3)',
  cluster: 'Several machines',
  clickhouse: 'Index of several machines (ClickHouse)',
  absence: 'Ids that nobody knows',
  peers: 'Other gateways',
  chunks: 'Chunks',
  answers: 'Answers: caching, metadata, memory',
  indexing: 'Index of the chain',
  rootLookup: 'Look-up of items that nothing here knows',
  webhooks: 'Webhooks',
  names: 'Names and hosts',
  moderation: 'Moderation',
  x402: 'Payments for egress (x402)',
  exclusions: 'Payments that are not taken',
  limits: 'Rate limiting',
  bands: 'Published indexes',
  swarm: 'BitTorrent, and indexes of other gateways',
  forwarding: 'Requests that other gateways hand on',
  manifests: 'Path manifests',
  queries: 'GraphQL',
  credits: 'Payment service: ledger and prices of credits',
  chains: 'Payment service: payments on chains',
  cards: 'Payment service: cards',
  mail: 'Payment service: letters',
  uploads: 'Upload service',
  client: 'Commands that upload and fetch',
}

/** What a setting that a running program can take up is marked with. */
export const reloadWords = 'used at once by sluice reload'

export interface SettingGroup {
  readonly title: string
  readonly settings: readonly Setting<unknown>[]
}

/** All settings in groups; with words, those that have every word in their name or text, whatever the case of letters. */
export function settingGroups(words: readonly string[] = []): SettingGroup[] {
  const wanted = words.map((word) => word.toLowerCase())
  return Object.entries(titles).flatMap(([name, title]) => {
    const settings = Object.values<Setting<unknown>>(listTables()[name as SettingsTable]).filter(
      (setting) => {
        const mark = setting.reloadable ? reloadWords : ''
        const text = `${setting.env} ${setting.why} ${setting.allowed} ${title} ${mark}`.toLowerCase()
        return wanted.every((word) => text.includes(word))
      },
    )
    return settings.length === 0 ? [] : [{ title, settings }]
  })
}
