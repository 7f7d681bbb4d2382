import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { checkWhileIdle } from '../main/data-folder.js'
import { LocalRegistry } from '../names/local-registry.js'
import { parseName } from '../names/name.js'
import { readRecord } from '../names/name-record.js'
import type { Name, NameRecord } from '../names/names-port.js'
import { exitCode } from './exit-code.js'

const help = `sluice names: names that this machine knows itself

Usage: sluice names set NAME ID [--ttl SECONDS] [--limit N --index N]
       sluice names list [--json]
       sluice names remove NAME
       sluice names import FILE
       sluice names grant NAME ADDRESS
       sluice names revoke NAME ADDRESS
       sluice names grants [--json]

  set     lets NAME mean ID; under_name is the undername 'under' of 'name', a record of its own
  import  sets all names of a JSON file, or none: {"name": "ID"} or {"name": {"id": "ID", "ttlSeconds": 900}}
  grant   lets the wallet set NAME over the network (sluice deploy --name), with all undernames of it; '*': any name
  revoke  takes that back; what the name means stays
  grants  who may set what

  --ttl    how long clients may believe it (900)
  --limit, --index   undernames that the name has paid for, and the place of this one; served where it is not above

Works on DATA_PATH/names, also while the gateway runs: it answers with the change within a second.

Examples:
  sluice names set docs 3ss1bMlBLY9yhYhx3jGZEQDbHBqkN0XXXJbYbkCnmTY
  sluice names grant docs 0x8ba1f109551bD432803012645Ac136ddd64DBA72
  sluice names list --json > names.json && sluice names import names.json
`

type Named = readonly [Name, NameRecord]

/** Exit code 0; 1 where there is no such name; 2 for wrong usage, with every error listed. */
export async function namesCommand(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      json: { type: 'boolean' },
      ttl: { type: 'string' },
      limit: { type: 'string' },
      index: { type: 'string' },
    },
    allowPositionals: true,
  })
  const [what, first = '', second = ''] = positionals
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config)
  const root = resolve(config.server.dataPath)
  await checkWhileIdle(root)
  const registry = new LocalRegistry(join(root, 'names'))
  try {
    if (what === 'list') return list(registry, values.json === true)
    if (what === 'remove') return remove(registry, first)
    if (what === 'import') return set(registry, readFile(first))
    if (what === 'grants') return grants(registry, values.json === true)
    if (what === 'grant' || what === 'revoke') return changeGrant(registry, what, first, second)
    if (what !== 'set')
      return wrong(['give set, list, remove, import, grant, revoke or grants; see sluice names --help'])
    const { ttl, limit, index } = values
    return set(registry, [
      readNamed(first, { id: second, ttlSeconds: ttl, undernameLimit: limit, recordIndex: index }),
    ])
  } finally {
    await registry.close()
  }
}

function wrong(messages: readonly string[]): number {
  for (const message of messages) process.stderr.write(`sluice names: ${message}\n`)
  return exitCode.usage
}

/** Sets all names or none: strings among `named` are errors. */
function set(registry: LocalRegistry, named: readonly (Named | string)[]): number {
  const faults = named.filter((one) => typeof one === 'string')
  if (faults.length > 0) return wrong(faults)
  const good = named.filter((one) => typeof one !== 'string')
  registry.set(good)
  process.stdout.write(good.length === 1 ? '1 name set\n' : `${good.length} names set\n`)
  return 0
}

function list(registry: LocalRegistry, json: boolean): number {
  const all = [...registry.list()]
  if (json) process.stdout.write(`${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
  else for (const [full, { id, ttlSeconds }] of all) process.stdout.write(`${full}  ${id}  ${ttlSeconds}\n`)
  return 0
}

function remove(registry: LocalRegistry, text: string): number {
  const name = parseName(text)
  if (name === undefined) return wrong([`not a name: ${text}`])
  if (registry.remove(name)) return 0
  process.stderr.write(`sluice names: there is no name ${name.full}\n`)
  return exitCode.notFound
}

/** Addresses as wallets of Ethereum, Arweave and Solana have them. */
const addressShape = /^(0x[0-9a-fA-F]{40}|[\w-]{43}|[1-9A-HJ-NP-Za-km-z]{32,44})$/

function changeGrant(
  registry: LocalRegistry,
  what: 'grant' | 'revoke',
  text: string,
  address: string,
): number {
  const name = text === '*' ? text : parseName(text)?.full
  if (name === undefined) return wrong([`not a name: '${text}'`])
  if (!addressShape.test(address)) return wrong([`not an address of a wallet: '${address}'`])
  const grant = { name, address }
  if (what === 'grant') {
    registry.grant(grant)
    process.stdout.write(`${address} may set ${name}\n`)
    return exitCode.done
  }
  if (!registry.revoke(grant)) {
    process.stderr.write(`sluice names: ${address} had no right to ${name}\n`)
    return exitCode.notFound
  }
  process.stdout.write(`${address} may not set ${name} any more\n`)
  return exitCode.done
}

function grants(registry: LocalRegistry, json: boolean): number {
  const all = [...registry.grants()]
  if (json) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`)
  else for (const { name, address } of all) process.stdout.write(`${name}  ${address}\n`)
  return exitCode.done
}

/** The names of a file, or what is wrong with it. */
function readFile(path: string): (Named | string)[] {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    return [`${path}: ${(error as Error).message}`]
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return [`${path}: must be a JSON object`]
  return Object.entries(json).map(([text, value]) =>
    readNamed(text, typeof value === 'string' ? { id: value } : value),
  )
}

/** A name with its record, or an error. Unlike in answers of resolvers, every malformed field is an error here. */
function readNamed(text: string, given: unknown): Named | string {
  const name = parseName(text)
  if (name === undefined) return `not a name: '${text}' (letters, digits, - and _, at most 63)`
  const fields = Object.entries(typeof given === 'object' && given !== null ? given : {})
  const present = Object.fromEntries(fields.filter(([, value]) => value !== undefined))
  const record = readRecord(present)
  if (record === undefined) return `${text}: not an id: '${String(present.id ?? '')}'`
  const bad = Object.keys(present).find(
    (key) => !Object.hasOwn(record, key) || String(present[key]) !== String(record[key as keyof NameRecord]),
  )
  return bad === undefined ? [name, record] : `${text}: ${bad} cannot be ${String(present[bad])}`
}
