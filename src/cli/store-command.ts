import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { abortAfter, pause, systemClock } from '../actor/clock.js'
import { vocabularies } from '../attest/vocabulary.js'
import { adminKey } from '../main/admin-key-file.js'
import type { TierState } from '../source/tier/tier-state.js'
import { exitCode } from './exit-code.js'
import { grouped, Progress } from './progress-line.js'
import { whyUnreachable } from './unreachable.js'

const help = `sluice store: content in the object store below the disk (CONTENT_STORE=s3)

Usage: sluice store status [--gateway URL] [--json]
       sluice store push   [--gateway URL] [--json] [--detach]
       sluice store pull   [--gateway URL] [--json] [--detach]
       sluice store stop   [--gateway URL] [--json]

  status     whether the store is well, what waits for it, what lies there, and how far a push or pull is
  push       puts all verified content on disk into the store; what is there already is not sent again
  pull       brings all content of the store onto the disk, as far as CONTIGUOUS_DATA_CACHE_MAX_BYTES goes
  stop       ends the push or pull; what was moved stays
  --gateway  the gateway, which must run with the same settings; http://127.0.0.1:PORT (3000)
  --detach   begins it and ends at once; the gateway goes on
  --json     for programs: the state as JSON, once, at the end

The gateway does the work, beside its readers. Every byte is compared with its digest before it is sent, and again when it comes.
A push goes on by itself after a restart of the gateway. A pull is begun again; content that is on disk by then is not brought
twice. Ctrl-C ends this command only.

Exit codes: 0 done, 1 it failed or was ended, 2 wrong arguments, 3 the gateway has no object store, 5 it does not answer.

Examples:
  sluice store push                      after CONTENT_STORE=s3 was set on a gateway with content
  sluice store pull                      a new machine takes all content of the others
  sluice store push --detach; sluice store status
`

const lookMs = 500
const orders = ['status', 'push', 'pull', 'stop']

/** Asks the gateway that runs with the same settings. */
export async function storeCommand(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      help: { type: 'boolean' },
      gateway: { type: 'string' },
      json: { type: 'boolean' },
      detach: { type: 'boolean' },
    },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const [order = '', ...more] = positionals
  if (!orders.includes(order) || more.length > 0) {
    process.stderr.write('sluice store: give status, push, pull or stop; see sluice store --help\n')
    return exitCode.usage
  }
  const config = readConfig()
  if (Array.isArray(config)) {
    for (const line of config) process.stderr.write(`sluice store: ${line}\n`)
    return exitCode.usage
  }
  const url = values.gateway ?? `http://127.0.0.1:${config.server.port}`
  const { pathPrefix } = vocabularies[config.server.vocabulary]
  const ask = asking(`${url}${pathPrefix}/admin/content-store`, url, adminKey(config))
  const first = await (order === 'status' ? ask('GET', '') : ask('POST', `/${order}`))
  if ('code' in first) return failed(first)
  const isWaited = (order === 'push' || order === 'pull') && values.detach !== true
  const last = isWaited ? await watched(ask, order, values.json === true) : first
  if ('code' in last) return failed(last)
  process.stdout.write(values.json === true ? `${JSON.stringify(last)}\n` : linesOf(last))
  return isWaited && last.walk?.state !== 'over' ? exitCode.failed : exitCode.done
}

interface Failure {
  readonly code: number
  readonly why: string
}

type Ask = (method: 'GET' | 'POST', path: string) => Promise<TierState | Failure>

/** `base`: of the orders, at the gateway `url`. */
function asking(base: string, url: string, key: string): Ask {
  return async (method, path) => {
    const headers = { authorization: `Bearer ${key}` }
    const signal = abortAfter(30_000)
    const answer = await fetch(base + path, { method, headers, signal }).catch(whyUnreachable)
    if (typeof answer === 'string') {
      const why = `${url} does not answer: ${answer}. Start the gateway, or name its address by --gateway`
      return { code: exitCode.unreachable, why }
    }
    const text = await answer.text()
    if (answer.ok) return JSON.parse(text) as TierState
    const code = answer.status === 404 ? exitCode.notFound : exitCode.failed
    return { code, why: `${answer.status}: ${text.slice(0, 500)}` }
  }
}

function failed({ code, why }: Failure): number {
  process.stderr.write(`sluice store: ${why}\n`)
  return code
}

/** Shows the progress until the walk has ended. */
async function watched(ask: Ask, order: string, isQuiet: boolean): Promise<TierState | Failure> {
  const progress = new Progress(order, systemClock)
  for (;;) {
    const state = await ask('GET', '')
    if ('code' in state) return state
    const { seen = 0, moved = 0, skipped = 0, failed: lost = 0 } = state.walk ?? {}
    const extra = [
      `${grouped(moved)} moved`,
      `${grouped(skipped)} left out`,
      ...(lost > 0 ? [`${grouped(lost)} failed`] : []),
      ...(order === 'push' ? [`${grouped(state.waiting)} wait`] : []),
      ...(state.state === 'well' ? [] : [`the store: ${state.state}`]),
    ].join(', ')
    if (state.walk?.state !== 'running') {
      if (!isQuiet) progress.end(seen, 0)
      return state
    }
    if (!isQuiet) progress.show(seen, 0, extra)
    await pause(lookMs)
  }
}

function linesOf({ state, waiting, packed, objects, walk }: TierState): string {
  const of = walk && `${walk.kind}: ${walk.state}, ${grouped(walk.seen)} seen, ${grouped(walk.moved)} moved`
  const rest = walk && `, ${grouped(walk.skipped)} left out, ${grouped(walk.failed)} failed`
  return [
    `store: ${state}`,
    `waiting: ${grouped(waiting)}`,
    `known there: ${grouped(packed)} in packs, ${grouped(objects)} objects put by this gateway`,
    ...(walk === undefined ? [] : [`${of}${rest}${walk.reason === undefined ? '' : `: ${walk.reason}`}`]),
    '',
  ].join('\n')
}
