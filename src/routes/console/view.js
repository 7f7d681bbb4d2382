/** Functions that make elements. Text is never parsed as markup. */

export function element(name, attributes = {}, inside = []) {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...(Array.isArray(inside) ? inside : [String(inside)]))
  return made
}

/** Replaces what is inside `place`. */
export function fill(place, inside) {
  place.replaceChildren(...inside)
}

export function cell(inside, kind = '') {
  return element('td', kind === '' ? {} : { class: kind }, inside)
}

/** A table, or the text `none` where it has no rows. Of three columns the last two hold numbers. */
export function table(heads, rows, none, kind = '') {
  if (rows.length === 0) return element('p', { class: 'quiet' }, none)
  const isNumber = (at) => (kind === '' ? at > 0 : rows[0][at].classList.contains('number'))
  const head = element(
    'tr',
    {},
    heads.map((text, at) =>
      element('th', { scope: 'col', ...(isNumber(at) ? { class: 'number' } : {}) }, text),
    ),
  )
  const body = rows.map((cells) => element('tr', {}, cells))
  const made = element('table', { class: kind }, [element('thead', {}, [head]), element('tbody', {}, body)])
  return element('div', { class: 'scroll' }, [made])
}
