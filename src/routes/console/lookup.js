import { ask, byId, isIn, prefix } from './session.js'
import { element, fill } from './view.js'

/** Looks up what a name leads to or what is known of an id, and removes its bytes from disk. */

byId('name-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const word = byId('name-what').value.trim()
  const isId = /^[\w-]{43}$/.test(word)
  try {
    const facts = isId ? await aboutId(word) : await aboutName(word)
    const pairs = facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)])
    fill(byId('name-said'), [element('dl', {}, pairs), ...(isId ? [evictButton(word)] : [])])
  } catch (error) {
    if (isIn()) fill(byId('name-said'), [element('p', { class: 'bad-text' }, error.message)])
  }
})

async function aboutName(name) {
  const blocked = await isBlocked(name.toLowerCase())
  const answer = await fetch(`${prefix}/resolver/${encodeURIComponent(name)}`, { cache: 'no-store' })
  const facts = [
    ['Name', name],
    ['Blocked', blocked],
  ]
  if (!answer.ok)
    return [...facts, ['Leads to', `nothing (${answer.status} ${(await answer.text()).slice(0, 80)})`]]
  const { txId, ttlSeconds, resolvedAt, index, limit } = await answer.json()
  facts.push(['Leads to', txId], ['Kept for', `${ttlSeconds} s`])
  if (resolvedAt !== undefined) facts.push(['Resolved', new Date(resolvedAt).toLocaleString()])
  if (index !== undefined && limit !== undefined) facts.push(['Undername', `${index} of ${limit}`])
  return facts
}

async function aboutId(id) {
  const facts = [
    ['Id', id],
    ['Blocked', await isBlocked(id)],
  ]
  const answer = await fetch(`/raw/${id}`, { method: 'HEAD', cache: 'no-store' })
  facts.push(['Answer', String(answer.status)])
  const shown = ['content-type', 'content-length', 'x-cache', 'cache-control', 'etag']
  for (const [name, value] of answer.headers) {
    if (shown.includes(name) || /-(verified|stable|trusted|root-transaction-id)$/.test(name))
      facts.push([name, value])
  }
  return facts
}

async function isBlocked(word) {
  const { entries } = await ask(`moderation?find=${encodeURIComponent(word)}`)
  return entries.length === 0
    ? 'no'
    : entries.map(({ source, notes }) => `yes: ${source} ${notes}`).join('; ')
}

function evictButton(id) {
  const button = element('button', { type: 'button' }, 'Drop its bytes from this disk')
  button.addEventListener('click', async () => {
    try {
      const { message } = await ask(`cache/${id}`, 'DELETE')
      button.replaceWith(element('p', {}, message))
    } catch (error) {
      if (isIn()) button.after(element('p', { class: 'bad-text' }, error.message))
    }
  })
  return button
}
