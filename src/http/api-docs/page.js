/** The page of all paths: filters them, and sends requests to try them out. Runs as it is, inside of the page. */
const bodyMax = 64 * 1024
const deadlineMs = 30_000
const parameters = JSON.parse(document.getElementById('parameters').textContent)
const rows = [...document.querySelectorAll('.paths li')]
const filter = document.getElementById('filter')
const count = document.getElementById('count')

const make = (name, about = {}, ...parts) => {
  const made = Object.assign(document.createElement(name), about)
  made.append(...parts)
  return made
}

/** Shows the rows that have every word. */
function show() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
  for (const row of rows) row.hidden = !words.every((word) => row.dataset.words.includes(word))
  for (const section of document.querySelectorAll('section'))
    section.hidden = section.querySelector('.paths li:not([hidden])') === null
  const shown = rows.filter(({ hidden }) => !hidden).length
  count.textContent = words.length === 0 ? '' : `${shown} of ${rows.length}`
}

/** A link to a row that is filtered out ends the filter. */
function reveal() {
  const row = document.getElementById(location.hash.slice(1))
  if (row === null) return
  if (row.hidden) {
    filter.value = ''
    show()
  }
  const details = row.querySelector('details')
  if (details !== null) details.open = true
  row.scrollIntoView()
}

const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`
/** A value may have several segments of a path. */
const inPath = (text) => encodeURIComponent(text).replaceAll('%2F', '/')

/** The address with what is in the fields; names in braces stay where a field is empty. */
function addressOf(row, fields) {
  const path = row.dataset.path.replace(/\{([^}]*)\}/g, (whole, name) => {
    const value = fields.get(name)?.value ?? ''
    return value === '' ? whole : inPath(value)
  })
  const query = new URLSearchParams()
  for (const name of row.dataset.query.split(' ').filter(Boolean)) {
    const value = fields.get(name)?.value ?? ''
    if (value !== '') query.append(name, value)
  }
  return path + (query.size === 0 ? '' : `?${query}`)
}

function curlOf(row, address) {
  const { method, takes, operator } = row.dataset
  const words = ['curl']
  if (method === 'GET') words.push('-iL')
  else words.push('-i', '-X', method)
  if (operator === 'true') words.push('-H', inShell('Authorization: Bearer {key}'))
  if (takes !== '') words.push('-H', inShell(`Content-Type: ${takes}`), '--data-binary', '@FILE')
  return [...words, inShell(location.origin + address)].join(' ')
}

/** At most `bodyMax` bytes of a body; the rest is not read. */
async function firstBytes(answer) {
  const pieces = []
  let size = 0
  const reader = answer.body?.getReader()
  while (reader !== undefined && size <= bodyMax) {
    const { done, value } = await reader.read()
    if (done) break
    pieces.push(value)
    size += value.length
  }
  void reader?.cancel()
  const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer())
  return { bytes: bytes.subarray(0, bodyMax), isCut: size > bodyMax }
}

const isText = (type) => /^text\/|json|xml|javascript|^$/.test(type)

/** What is shown of a body: text, JSON indented; of other bytes only how many they are. */
function bodyText({ bytes, isCut }, type) {
  const end = isCut ? `\n... cut after ${bodyMax / 1024} KiB` : ''
  if (!isText(type)) return `${isCut ? 'more than ' : ''}${bytes.length} bytes of ${type}`
  const text = new TextDecoder().decode(bytes)
  if (isCut || !type.includes('json')) return text + end
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // No JSON after all: shown as it came.
    return text
  }
}

async function send(address, place) {
  const startedMs = performance.now()
  place.replaceChildren(make('p', { className: 'quiet' }, 'waiting'))
  const ms = () => `${Math.round(performance.now() - startedMs)} ms`
  try {
    const signal = AbortSignal.timeout(deadlineMs)
    const answer = await fetch(address, { redirect: 'manual', signal, headers: { Accept: '*/*' } })
    if (answer.type === 'opaqueredirect') {
      const link = make('a', { href: address }, 'Open it')
      place.replaceChildren(
        make('p', {}, `A redirect, after ${ms()}. Scripts do not see where it leads. `, link),
      )
      return
    }
    const type = answer.headers.get('content-type') ?? ''
    const text = bodyText(await firstBytes(answer), type)
    const heads = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    place.replaceChildren(
      make('p', {}, make('b', {}, `${answer.status} ${answer.statusText}`), ` in ${ms()}`),
      make('pre', { tabIndex: 0, ariaLabel: 'Headers' }, heads),
      make('pre', { tabIndex: 0, ariaLabel: 'Body', className: 'body' }, text),
    )
  } catch (error) {
    place.replaceChildren(make('p', { className: 'bad' }, `No answer after ${ms()}: ${error.message}`))
  }
}

/** Fields, the line for a shell, and a button where a request changes nothing. */
function build(row) {
  const fields = new Map()
  const form = make('form')
  const names = [...row.dataset.path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name)
  const queries = row.dataset.query.split(' ').filter(Boolean)
  for (const name of new Set([...names, ...queries])) {
    const { description = '', example = '' } = parameters[name] ?? {}
    const input = make('input', { spellcheck: false, autocomplete: 'off', placeholder: example })
    if (names.includes(name)) input.value = example
    fields.set(name, input)
    form.append(make('label', {}, `${name}: ${description}`, input))
  }
  const line = make('pre', { tabIndex: 0, ariaLabel: 'The same with curl', className: 'curl' })
  const tell = () => {
    line.textContent = curlOf(row, addressOf(row, fields))
  }
  const place = make('div', { className: 'answer' })
  place.setAttribute('role', 'status')
  form.addEventListener('input', tell)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (row.dataset.tries === 'true') void send(addressOf(row, fields), place)
  })
  if (row.dataset.tries === 'true') form.append(make('button', {}, 'Send'))
  tell()
  row.querySelector('details').append(form, line, place)
}

for (const row of rows)
  row.querySelector('details').addEventListener('toggle', () => build(row), { once: true })
filter.addEventListener('input', show)
addEventListener('hashchange', reveal)
show()
reveal()
