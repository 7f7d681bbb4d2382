/** Charts of the last minutes, drawn as SVG. */
import { element } from './view.js'

/** Readings that a chart remembers: five minutes. */
export const looksMax = 150
const svgName = 'http://www.w3.org/2000/svg'

/** The values that charts have shown so far, by chart and line. */
export class History {
  #lines = new Map()

  /** Adds a value; undefined where there was nothing to measure. Returns all values of that line. */
  add(name, value) {
    const values = this.#lines.get(name) ?? []
    values.push(value)
    if (values.length > looksMax) values.shift()
    this.#lines.set(name, values)
    return values
  }
}

/** Parts of a line between gaps, as points in a box of 100 by 40 with zero at the bottom and `top` at the top. */
export function stretches(values, top) {
  const found = [[]]
  values.forEach((value, at) => {
    if (value === undefined) found.push([])
    else {
      const x = ((at + looksMax - values.length) * 100) / (looksMax - 1)
      found.at(-1).push(`${x.toFixed(2)},${(39 - (value / top) * 37).toFixed(2)}`)
    }
  })
  return found.filter((points) => points.length > 0).map((points) => points.join(' '))
}

/** A chart: `lines` are {name, values}, `spell` formats a value. */
export function chart(title, lines, spell) {
  const top = Math.max(...lines.flatMap(({ values }) => values.map((value) => value ?? 0))) || 1
  const svg = document.createElementNS(svgName, 'svg')
  svg.setAttribute('viewBox', '0 0 100 40')
  svg.setAttribute('preserveAspectRatio', 'none')
  svg.setAttribute('role', 'img')
  const now = lines.map(
    ({ name, values }) => `${name} ${values.at(-1) === undefined ? 'none' : spell(values.at(-1))}`,
  )
  svg.setAttribute('aria-label', `${title}: ${now.join(', ')}; at most ${spell(top)} in five minutes`)
  lines.forEach(({ values }, index) => {
    for (const points of stretches(values, top)) {
      const line = document.createElementNS(svgName, 'polyline')
      // A single point is a line of no length: its round ends show it.
      line.setAttribute('points', points.includes(' ') ? points : `${points} ${points}`)
      line.setAttribute('class', `line-${index}`)
      svg.append(line)
    }
  })
  const legend = now.map((text, index) => element('span', { class: `key-${index}` }, text))
  return element('figure', { class: 'chart' }, [
    element('figcaption', {}, [element('strong', {}, title), element('small', {}, `up to ${spell(top)}`)]),
    svg,
    element('div', { class: 'legend' }, legend),
  ])
}
