/** The lines of the log, and what changed: the last 24 hours, also those of runs before this one. */
import { ask, byId, isIn } from './session.js'
import { cell, element, fill, table } from './view.js'

const pageSize = 50
/** Pages that one search looks through before it asks whether to go on. */
const pagesMax = 10
const followMs = 5000
const levelNames = { 20: 'client fault', 30: 'info', 40: 'warning', 50: 'error', 60: 'fatal' }
let lines = []
let next
let timer

/** Who looks for something wants it whatever its level is. */
function wish(more) {
  const find = byId('log-find').value.trim()
  const level = byId('log-level').value
  const query = new URLSearchParams({
    kind: byId('log-kind').value,
    level: find !== '' && level === 'info' ? 'all' : level,
    find,
    limit: String(pageSize),
  })
  if (more && next !== undefined) query.set('cursor', next)
  return query
}

/** Shows the newest lines that fit, or those behind the ones that are shown. */
export async function showLog(more = false) {
  clearTimeout(timer)
  if (!isIn()) return
  try {
    let found = more ? lines : []
    for (let pages = 0; pages < pagesMax; pages += 1) {
      const page = await ask(`log?${wish(more || pages > 0)}`)
      found = [...found, ...page.lines]
      next = page.next
      if (page.lines.length > 0 || next === undefined) break
    }
    lines = found
    draw()
  } catch (error) {
    if (isIn()) byId('log-said').textContent = error.message
  }
  clearTimeout(timer)
  if (byId('log-follow').checked) timer = setTimeout(() => void showLog(), followMs)
}

function draw() {
  const rows = lines.map((line) => [
    cell(new Date(line.time).toLocaleString(), 'number'),
    cell(line.change === undefined ? (levelNames[line.level] ?? '') : line.change.kind),
    cell(line.thread ?? ''),
    cell([about(line)], 'mono'),
  ])
  const none =
    next === undefined ? 'No such line in the last 24 hours.' : 'No such line so far: look further back.'
  fill(byId('log-lines'), [table(['Time', 'Level', 'Thread', 'Line'], rows, none, 'log stacks')])
  byId('log-older').hidden = next === undefined
  byId('log-said').textContent = ''
}

/** In one line what happened; opened, all that the line has. */
function about(line) {
  const { requestId, method, path, status, code, reason, msg, err, change } = line
  const cells = requestId === undefined ? [] : [method, path, status, code, reason]
  const words =
    change === undefined ? [...cells, msg === 'request' ? '' : msg, err?.message] : [change.what, change.by]
  const text = words.filter((word) => word !== undefined && word !== '').join(' ')
  return element('details', {}, [
    element('summary', {}, text),
    element('pre', {}, JSON.stringify(line, null, 2).replaceAll('\\n', '\n    ')),
  ])
}

/** What an operator, a setting or a start changed, the newest first. Resolves with the seconds at which it was. */
export async function showChanges() {
  try {
    const page = await ask(`log?kind=changes&limit=${pageSize}`)
    const rows = page.lines.map(({ time, change }) => [
      cell(new Date(time).toLocaleString(), 'number'),
      cell(change.what, 'mono'),
      cell(change.by ?? ''),
    ])
    fill(byId('changes'), [table(['Time', 'What', 'By'], rows, 'Nothing has changed.', 'log stacks')])
    return page.lines.map(({ time }) => new Date(time).getTime() / 1000)
  } catch (error) {
    if (isIn()) fill(byId('changes'), [element('p', { class: 'said bad' }, error.message)])
    return []
  }
}

byId('log-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void showLog()
})
for (const name of ['log-kind', 'log-level', 'log-follow'])
  byId(name).addEventListener('change', () => void showLog())
byId('log-older').addEventListener('click', () => {
  byId('log-follow').checked = false
  void showLog(true)
})
