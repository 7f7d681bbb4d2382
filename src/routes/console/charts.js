/** Charts of stretches of time, drawn by uPlot, which the page loads before its own scripts. */
import { element, fill } from './view.js'

const height = 150
const colors = ['--accent', '--warn', '--bad', '--good', '--quiet']
/** So few that some may have no neighbour, and would not be seen as a line. */
const fewValues = 40
const clock = (at) =>
  new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false })
const dark = matchMedia('(prefers-color-scheme: dark)')
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** A chart in a figure of its own, which keeps the width of its place. */
export class Chart {
  #plot
  #shown = ''
  #last
  #body = element('div')
  #figure

  /** `spell` formats a value. */
  constructor(title, spell) {
    this.title = title
    this.spell = spell
    this.#figure = element('figure', { class: 'chart' }, [
      element('figcaption', {}, [element('strong', {}, title)]),
      this.#body,
    ])
    new ResizeObserver(() => this.#fit()).observe(this.#figure)
    dark.addEventListener('change', () => this.#draw(true))
  }

  get figure() {
    return this.#figure
  }

  /** `times` and `marks` in seconds; `lines` are {name, values}, a value that is null leaves a gap. */
  show(times, lines, marks = []) {
    this.#last = { times, lines, marks }
    this.#draw(false)
  }

  #draw(isAnew) {
    if (this.#last === undefined) return
    const { times, lines, marks } = this.#last
    const latest = lines.map(({ name, values }) => {
      const known = values.filter((value) => value !== null)
      return known.length === 0 ? `${name}: nothing` : `${name}: at most ${this.spell(Math.max(...known))}`
    })
    const marked = marks.filter((at) => at >= times[0] && at <= times.at(-1)).length
    const changes = marked === 0 ? '' : `; changes: ${marked}`
    this.#figure.setAttribute('aria-label', `${this.title}. ${latest.join('; ')}${changes}`)
    const names = lines.map(({ name }) => name).join('\n')
    const data = [times, ...lines.map(({ values }) => values)]
    if (!isAnew && names === this.#shown) {
      this.#plot.setData(data)
      return
    }
    this.#plot?.destroy()
    this.#shown = names
    fill(this.#body, [])
    this.#plot = new globalThis.uPlot(this.#options(lines), data, this.#body)
  }

  #options(lines) {
    const axis = {
      stroke: color('--quiet'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
    }
    const spell = (value) => (value === null || value === undefined ? '' : this.spell(value))
    return {
      width: this.#width(),
      height,
      hooks: { drawAxes: [(plot) => this.#mark(plot)] },
      cursor: { sync: { key: 'console' }, points: { size: 5 } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05] } },
      axes: [
        { ...axis, space: 60, size: 26, values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 64, space: 34, values: (_, ticks) => ticks.map(spell) },
      ],
      series: [
        { label: 'Time', value: (_, at) => (at === null ? '' : new Date(at * 1000).toLocaleTimeString()) },
        ...lines.map(({ name, values }, index) => ({
          label: name,
          stroke: color(colors[index % colors.length]),
          dash: index < colors.length ? [] : [4, 3],
          width: 1.5,
          points: { show: values.filter((value) => value !== null).length < fewValues, size: 4 },
          value: (_, value) => spell(value),
        })),
      ],
    }
  }

  /** A dashed line where something was changed. */
  #mark(plot) {
    const { ctx, bbox } = plot
    ctx.save()
    ctx.strokeStyle = color('--warn')
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
    ctx.lineWidth = devicePixelRatio
    ctx.beginPath()
    for (const at of this.#last.marks) {
      const x = Math.round(plot.valToPos(at, 'x', true))
      if (x < bbox.left || x > bbox.left + bbox.width) continue
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
    }
    ctx.stroke()
    ctx.restore()
  }

  #width() {
    return Math.max(200, Math.floor(this.#figure.clientWidth))
  }

  #fit() {
    if (this.#plot !== undefined && this.#plot.width !== this.#width())
      this.#plot.setSize({ width: this.#width(), height })
  }
}
