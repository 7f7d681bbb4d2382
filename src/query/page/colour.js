/** Colours of a query, and the answer as a tree that can be folded. Each gives nodes of the page; text is never read as HTML. */

const graphql =
  /(?<note>#[^\n]*)|(?<text>"""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?)|(?<variable>\$\w+)|(?<word>\b(?:query|mutation|subscription|fragment|on|true|false|null)\b)|(?<number>-?\b\d[\d.eE+-]*)|(?<field>[A-Za-z_]\w*)/g
const json =
  /(?<field>"(?:\\.|[^"\\\n])*"(?=\s*:))|(?<text>"(?:\\.|[^"\\\n])*"?)|(?<word>\b(?:true|false|null)\b)|(?<number>-?\b\d[\d.eE+-]*)/g

/** Pieces of a text with the class of each; '' for what has no colour. Together they are the text. */
export function pieces(text, language) {
  const found = []
  let end = 0
  for (const match of text.matchAll(language === 'json' ? json : graphql)) {
    const [kind = ''] = Object.entries(match.groups).find(([, value]) => value !== undefined) ?? []
    if (match.index > end) found.push(['', text.slice(end, match.index)])
    found.push([kind, match[0]])
    end = match.index + match[0].length
  }
  if (end < text.length) found.push(['', text.slice(end)])
  return found
}

const span = (kind, text) => {
  const made = document.createElement('span')
  made.className = kind
  made.textContent = text
  return made
}

/** Above this length the text is shown without colours, so that typing stays fast. */
const colouredMax = 50_000

/** Keeps a coloured copy below the text of a field, which itself becomes transparent. */
export function colour(field, language) {
  const below = document.createElement('pre')
  below.className = 'below'
  below.setAttribute('aria-hidden', 'true')
  field.before(below)
  field.classList.add('coloured')
  const scroll = () => {
    below.scrollTop = field.scrollTop
  }
  const paint = () => {
    const { value } = field
    const all = value.length > colouredMax ? [['', value]] : pieces(value, language)
    // A line break at the end takes no line in a `pre`, but one in a field.
    below.replaceChildren(...all.map(([kind, text]) => (kind === '' ? text : span(kind, text))), '\n')
    scroll()
  }
  field.addEventListener('input', paint)
  field.addEventListener('scroll', scroll)
  paint()
  return paint
}

/** So many values are unfolded at first; the others are made when they are unfolded. */
const openMax = 2000

/** A value of JSON as a tree. Its text is the JSON again, whatever is folded but not made yet aside. */
export function tree(value) {
  let left = openMax
  const plain = (one) => {
    const kind = typeof one === 'string' ? 'text' : typeof one === 'number' ? 'number' : 'word'
    return span(kind, JSON.stringify(one))
  }
  const branch = (lead, one, tail) => {
    const isList = Array.isArray(one)
    const [open, close] = isList ? '[]' : '{}'
    const members = Object.entries(one)
    if (members.length === 0) return line(...lead, open + close + tail)
    const made = document.createElement('details')
    const head = document.createElement('summary')
    head.append(...lead, open)
    head.dataset.folded = `${members.length} ${close}${tail}`
    const inside = document.createElement('div')
    made.append(head, inside, line(close + tail))
    const fill = () => {
      if (inside.hasChildNodes()) return
      inside.append(
        ...members.map(([name, member], index) =>
          node(
            isList ? [] : [span('field', JSON.stringify(name)), ': '],
            member,
            index + 1 < members.length ? ',' : '',
          ),
        ),
      )
    }
    left -= members.length
    if (left > 0) {
      made.open = true
      fill()
    }
    made.addEventListener('toggle', fill)
    return made
  }
  const line = (...parts) => {
    const made = document.createElement('div')
    made.append(...parts)
    return made
  }
  const node = (lead, one, tail) =>
    typeof one === 'object' && one !== null ? branch(lead, one, tail) : line(...lead, plain(one), tail)
  return node([], value, '')
}
