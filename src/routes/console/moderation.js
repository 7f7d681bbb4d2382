import { ask, byId, isIn } from './session.js'
import { cell, element, fill, table } from './view.js'

/** The block list, and changing it. */

const pageSize = 10
let shown = []
let next

/** Shows the newest entries, or those behind the ones that are shown. */
export async function list(more = false) {
  const find = byId('find-what').value.trim()
  const query =
    find === '' ? `limit=${pageSize}${more ? `&before=${next}` : ''}` : `find=${encodeURIComponent(find)}`
  try {
    const page = await ask(`moderation?${query}`)
    shown = more ? [...shown, ...page.entries] : page.entries
    next = page.next
    draw(find)
  } catch (error) {
    if (isIn()) say(error.message, 'bad')
  }
}

function draw(find) {
  const rows = shown.map((entry) => {
    const button = element(
      'button',
      { type: 'button', 'aria-label': `Release ${entry.kind} ${entry.key}` },
      'Release',
    )
    button.addEventListener('click', () => void release(entry))
    return [
      cell(entry.key, 'mono'),
      cell(entry.kind),
      cell(entry.source),
      cell(entry.notes),
      cell(new Date(entry.blockedAtSeconds * 1000).toLocaleString()),
      cell([button]),
    ]
  })
  const none = find === '' ? 'Nothing is blocked.' : `${find} is not blocked.`
  const made = table(['What', 'Kind', 'Source', 'Notes', 'Since', ''], rows, none, 'stacks')
  fill(byId('blocked'), [made])
  byId('older').hidden = next === undefined
}

function say(text, kind) {
  byId('block-said').textContent = text
  byId('block-said').className = `said ${kind}`
}

/** What a word means: a hash in hexadecimal, an id, or else a name. */
function subjectOf(word) {
  if (/^[0-9a-f]{64}$/i.test(word)) return { route: 'data', body: { hash: word } }
  if (word.startsWith('hash:')) return { route: 'data', body: { hash: word.slice(5) } }
  if (/^[\w-]{43}$/.test(word)) return { route: 'data', body: { id: word } }
  return { route: 'name', body: { name: word.replace(/^name:/, '') } }
}

byId('block-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const word = byId('block-what').value.trim()
  const { route, body } = subjectOf(word)
  const ground = { source: byId('block-source').value.trim(), notes: byId('block-notes').value }
  try {
    const { message } = await ask(`block-${route}`, 'PUT', { ...body, ...ground })
    say(`${message}: ${word}. Caches in front of this gateway may have to be purged.`, 'good')
    byId('block-what').value = ''
    byId('find-what').value = ''
    await list()
  } catch (error) {
    if (isIn()) say(error.message, 'bad')
  }
})

async function release({ kind, key, source, notes }) {
  if (
    !(await isSure(
      `Serve this ${kind} again? ${key} was blocked for: ${source}${notes === '' ? '' : `, ${notes}`}`,
    ))
  )
    return
  const route = kind === 'name' ? 'unblock-name' : 'unblock-data'
  try {
    const { message } = await ask(route, 'PUT', { [kind]: key })
    say(`${message}: ${key}`, 'good')
    await list()
  } catch (error) {
    if (isIn()) say(error.message, 'bad')
  }
}

/** Asks for confirmation, because a wrong click would be costly. */
function isSure(text) {
  const dialog = byId('sure')
  byId('sure-said').textContent = text
  dialog.returnValue = 'no'
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true })
  })
}

byId('find-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void list()
})
byId('older').addEventListener('click', () => void list(true))
