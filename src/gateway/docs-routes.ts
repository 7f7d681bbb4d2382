import { type Described, type DescribedService, openApiOf } from '../http/openapi.js'
import type { Operations } from '../http/operation.js'
import { type HtmlPage, inHtml, makePage } from '../http/page.js'
import { anyObject, formOf, textForm } from '../http/schemas.js'
import { answerSmall, htmlType, jsonType, publicShortly } from '../http/small-answer.js'
import type { Route } from './parts.js'

/**
 * `/openapi.json` and `/api-docs`: every path of a service. `table` is asked once, when the routes are complete. `prefixes`:
 * below which they are answered.
 */
export function docsRoutes(
  table: () => readonly Described[],
  service: DescribedService,
  prefixes: readonly string[] = [''],
): Route[] {
  const late = (make: () => HtmlPage): (() => HtmlPage) => {
    let text: HtmlPage | undefined
    return () => {
      text ??= make()
      return text
    }
  }
  const json = late(() => ({ html: `${JSON.stringify(openApiOf(table(), service))}\n`, lines: '' }))
  const page = late(() => pageOf(table(), service))
  const route = (path: string, type: string, make: () => HtmlPage, about: Operations): Route => ({
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about,
    handle(request, reply, first) {
      const { html, lines } = make()
      answerSmall(request, reply, first, { status: 200, type, lines: publicShortly + lines, body: html })
    },
  })
  const shape = { gives: formOf({ openapi: textForm, info: anyObject, paths: anyObject }) }
  return prefixes.flatMap((prefix) => [
    route(`${prefix}/openapi.json`, jsonType, json, [
      { path: `${prefix}/openapi.json`, summary: 'This description', statuses: [200], shape },
    ]),
    route(`${prefix}/api-docs`, htmlType, page, [
      {
        path: `${prefix}/api-docs`,
        summary: 'This description as a page',
        statuses: [200],
        type: 'text/html',
      },
    ]),
  ])
}

function pageOf(table: readonly Described[], { title, release }: DescribedService): HtmlPage {
  const sorted = [...table].sort((one, other) => (one.path < other.path ? -1 : 1))
  const part = (heading: string, isOperators: boolean): string => {
    const rows = sorted.filter(({ operator }) => (operator === true) === isOperators)
    return rows.length === 0
      ? ''
      : `<section><h2>${heading}</h2><ul class="paths">\n${rows.map(rowOf).join('\n')}\n</ul></section>`
  }
  return makePage(
    `${title}: paths`,
    `<p class="lead">What each path answers in release ${inHtml(release)}. For programs:
<a href="/openapi.json">openapi.json</a>.</p>
${part('For everybody', false)}${part('For the operator, with the admin key', true)}`,
  )
}

function rowOf({ path, methods, summary, query }: Described): string {
  const asked = query === undefined ? '' : `?${query.join('&')}`
  const words = methods.map((method) => `<b>${method}</b>`).join('')
  return `<li>${words} <code>${inHtml(path + asked)}</code><p>${inHtml(summary)}</p></li>`
}
