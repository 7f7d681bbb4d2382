/** Elements of the page. Texts are texts: nothing here makes markup of them. */

export const byId = (id) => document.getElementById(id)

export function element(name, attributes = {}, inside = []) {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...(Array.isArray(inside) ? inside : [inside]))
  return made
}

export function button(text, act, kind = '') {
  const made = element('button', { type: 'button', ...(kind === '' ? {} : { class: kind }) }, text)
  made.addEventListener('click', act)
  return made
}

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Bytes for people. */
export function bytes(count) {
  let value = count
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** Hands the browser a file to save. */
export function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }))
  const link = element('a', { href: url, download: name })
  link.click()
  URL.revokeObjectURL(url)
}

export function shortened(text) {
  return text.length <= 20 ? text : `${text.slice(0, 8)}…${text.slice(-6)}`
}
