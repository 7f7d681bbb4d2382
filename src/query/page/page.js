import { colour, tree } from './colour.js'
import { completions, introspection, schemaOf, spelled } from './complete.js'
import { noteQuery, readHistory, titleOf, writeHistory } from './history.js'

const by = (id) => document.getElementById(id)
const [query, variables, headers, list] = [by('query'), by('variables'), by('headers'), by('offers')]
const examples = JSON.parse(by('examples').textContent)
const storage = () => localStorage
let history = readHistory(storage)
let answered = ''
const offersMax = 50
let schema
let shown = []
let chosen = 0

/** `more`: header lines besides the two that every query needs. */
async function ask(text, values, more = {}) {
  const answer = await fetch(location.pathname, {
    method: 'POST',
    headers: { ...more, 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ query: text, variables: values }),
  })
  return { status: answer.status, text: await answer.text() }
}

/** The object in a field; undefined where the field is empty. Throws with the name of the field. */
function objectIn(field, name) {
  const text = field.value.trim()
  if (text === '') return undefined
  try {
    const value = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    throw new Error(`${name}: ${error.message}`)
  }
  throw new Error(`${name}: write a JSON object`)
}

async function run() {
  by('answer').textContent = '...'
  by('time').textContent = ''
  by('run').disabled = true
  answered = ''
  try {
    const values = objectIn(variables, 'Variables')
    const more = objectIn(headers, 'HTTP headers')
    history = noteQuery(storage, { query: query.value, variables: variables.value })
    listHistory()
    const startedMs = performance.now()
    const { status, text } = await ask(query.value, values, more)
    by('time').textContent =
      `${status}, ${(performance.now() - startedMs).toFixed(0)} ms, ${text.length} characters`
    const value = JSON.parse(text)
    answered = JSON.stringify(value, null, 2)
    by('answer').replaceChildren(tree(value))
  } catch (error) {
    by('answer').textContent = String(error)
  } finally {
    by('run').disabled = false
  }
}

const optionOf = (text) => Object.assign(document.createElement('option'), { textContent: text })

function listHistory() {
  const first = optionOf(history.length === 0 ? 'none yet' : `last ${history.length}`)
  by('history').replaceChildren(first, ...history.map((one) => optionOf(titleOf(one))))
  by('history').disabled = history.length === 0
  by('clear').disabled = history.length === 0
}

/** Where the caret is on the screen: the text before it is laid out once more, in a box of the same shape. */
function caret() {
  const mirror = by('mirror')
  const mark = document.createElement('span')
  mark.textContent = '\u200b'
  mirror.replaceChildren(query.value.slice(0, query.selectionStart), mark)
  mirror.style.width = `${query.clientWidth}px`
  const { left, top } = query.getBoundingClientRect()
  return { x: left + mark.offsetLeft, y: top + mark.offsetTop + mark.offsetHeight - query.scrollTop }
}

function close() {
  shown = []
  list.hidden = true
  query.removeAttribute('aria-activedescendant')
  query.setAttribute('aria-expanded', 'false')
}

function choose(at) {
  chosen = (at + shown.length) % shown.length
  for (const [index, one] of [...list.children].entries())
    one.setAttribute('aria-selected', String(index === chosen))
  list.children[chosen].scrollIntoView({ block: 'nearest' })
  query.setAttribute('aria-activedescendant', list.children[chosen].id)
}

function offerOf({ name, type, about }, index) {
  const made = document.createElement('li')
  made.id = `offer-${index}`
  made.role = 'option'
  made.title = about
  const kind = document.createElement('small')
  kind.textContent = type
  made.append(name, ' ', kind)
  made.addEventListener('mousedown', (event) => {
    event.preventDefault()
    take(index)
  })
  return made
}

/** Shows what may stand at the caret. `isAsked`: also where nothing of the word is there yet. */
function offer(isAsked) {
  if (schema === undefined || query.selectionStart !== query.selectionEnd) return close()
  const { prefix, offers } = completions(query.value.slice(0, query.selectionStart), schema)
  if (offers.length === 0 || (prefix === '' && !isAsked)) return close()
  shown = offers.slice(0, offersMax)
  list.replaceChildren(...shown.map(offerOf))
  list.hidden = false
  query.setAttribute('aria-expanded', 'true')
  const { x, y } = caret()
  list.style.left = `${Math.max(4, Math.min(x, innerWidth - list.offsetWidth - 4))}px`
  list.style.top = `${Math.min(y, innerHeight - list.offsetHeight - 4)}px`
  choose(0)
}

function take(index) {
  const { prefix } = completions(query.value.slice(0, query.selectionStart), schema)
  query.setRangeText(shown[index].name, query.selectionStart - prefix.length, query.selectionStart, 'end')
  for (const paint of paints) paint()
  close()
}

query.addEventListener('input', () => offer(false))
query.addEventListener('blur', close)
query.addEventListener('scroll', close)
query.addEventListener('keydown', (event) => {
  const isOpen = shown.length > 0
  if (event.key === ' ' && event.ctrlKey) offer(true)
  else if (isOpen && event.key === 'ArrowDown') choose(chosen + 1)
  else if (isOpen && event.key === 'ArrowUp') choose(chosen - 1)
  else if (isOpen && event.key === 'Escape') close()
  else if (isOpen && !event.ctrlKey && !event.metaKey && (event.key === 'Enter' || event.key === 'Tab'))
    take(chosen)
  else return
  event.preventDefault()
})
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void run()
})
by('run').addEventListener('click', run)

const paints = [colour(query, 'graphql'), colour(variables, 'json'), colour(headers, 'json')]
function fill(text, values) {
  query.value = text
  variables.value = values
  for (const paint of paints) paint()
  close()
}
const fillExample = (index) => {
  const { text, values } = examples[index]
  fill(text, values === undefined ? '' : JSON.stringify(values, null, 2))
}
by('example').addEventListener('change', ({ target }) => fillExample(target.selectedIndex))
by('history').addEventListener('change', ({ target }) => {
  const one = history[target.selectedIndex - 1]
  if (one !== undefined) fill(one.query, one.variables)
  target.selectedIndex = 0
})
by('clear').addEventListener('click', () => {
  history = []
  writeHistory(storage, history)
  listHistory()
})
const foldAll = (open) => {
  // Only the first rank below `data`: what lies deeper is folded with it.
  for (const one of document.querySelectorAll('#answer details details')) one.open = open
}
by('fold').addEventListener('click', () => foldAll(false))
by('unfold').addEventListener('click', () => foldAll(true))
by('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(answered)
    by('time').textContent = 'copied'
  } catch (error) {
    by('time').textContent = `not copied: ${error.message}`
  }
})
listHistory()
fillExample(0)

/** The list of types beside the answer: what each has, and what it means. */
function describe({ types }) {
  const made = []
  for (const { name, kind, description, fields, inputFields, enumValues } of types.values()) {
    if (name.startsWith('__') || kind === 'SCALAR') continue
    const heading = document.createElement('h3')
    heading.textContent = name
    heading.title = description ?? ''
    const lines = [...(fields ?? []), ...(inputFields ?? []), ...(enumValues ?? [])].map((one) => {
      const words = (one.args ?? []).map((arg) => `${arg.name}: ${spelled(arg.type)}`).join(', ')
      const line = document.createElement('li')
      line.textContent = `${one.name}${words && `(${words})`}${one.type ? `: ${spelled(one.type)}` : ''}`
      line.title = one.description ?? ''
      return line
    })
    const place = document.createElement('ul')
    place.append(...lines)
    made.push(heading, place)
  }
  by('schema').replaceChildren(...made)
}

ask(introspection).then(
  ({ text }) => {
    schema = schemaOf(JSON.parse(text).data)
    describe(schema)
    document.body.dataset.schema = 'there'
  },
  (error) => {
    by('schema').textContent = `The schema could not be had: ${error}`
  },
)
