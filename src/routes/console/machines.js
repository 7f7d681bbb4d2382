/** The part of the console about the cluster: who is there, and what is wrong. */
import { number, span } from './metrics.js'
import { watchService } from './service-watch.js'
import { ask, byId } from './session.js'
import { cell, element, fill, table } from './view.js'

const everyMs = 5000

/** Looks while somebody looks on. Nothing is requested where this machine is in no cluster. */
export const machines = watchService('machines', async () => show(await ask('cluster')), everyMs)

function show({ version, answerMs, machines: all, findings }) {
  byId('machines-said').textContent = ''
  byId('machines-count').textContent = `${number(all.length)}, PostgreSQL answers in ${answerMs} ms`
  fill(byId('machines-list'), [
    table(
      ['Machine', 'Seen', 'Version', 'Services', 'Lists', 'Engines', 'Index in ClickHouse'],
      all.map((machine) => [
        cell(machine.node, 'mono'),
        cell(...presence(machine)),
        cell(machine.version),
        cell(machine.services.join(', ')),
        cell(lists(machine, version)),
        cell(...engines(machine)),
        cell(index(machine)),
      ]),
      'No machine has stated that it is there.',
      'plain',
    ),
  ])
  const wrong = findings.filter(({ level }) => level !== 'ok')
  fill(
    byId('machines-findings'),
    wrong.map(({ level, text }) => element('li', { class: level === 'fault' ? 'bad-text' : 'quiet' }, text)),
  )
}

function presence({ presence: state, ageSeconds, drain }) {
  if (state === 'lost') return [`lost, seen ${span(ageSeconds)} ago`, 'bad-text']
  if (state === 'stopped') return [`stopped ${span(ageSeconds)} ago`]
  if (drain === undefined) return [`${span(ageSeconds)} ago`]
  const owed = `${number(drain.items)} items, ${number(drain.bundles)} bundles`
  return [drain.state === 'drained' ? 'drained' : `being drained: ${owed}`, 'bad-text']
}

function lists({ listVersion, unshared }, version) {
  const behind = Math.max(0, version - listVersion)
  const waits = unshared > 0 ? `, ${number(unshared)} of its own wait` : ''
  return (behind === 0 ? 'all changes' : `${number(behind)} changes behind`) + waits
}

/** What each engine said at the last heartbeat: milliseconds, or why it gave no answer. */
function engines({ engines: all }) {
  const words = Object.entries(all).map(
    ([name, health]) => `${name} ${typeof health === 'number' ? `${health} ms` : health}`,
  )
  const isAway = Object.values(all).some((health) => typeof health !== 'number')
  return [words.join(', '), isAway ? 'bad-text' : '']
}

function index({ index: work }) {
  if (work === undefined) return ''
  return work.leads ? `writes: up to ${number(work.height)}, ${number(work.lag)} behind` : 'may write'
}
