import { apiDocsPage } from '../http/api-docs-page.js'
import { type Described, type DescribedService, openApiOf } from '../http/openapi.js'
import type { Operations } from '../http/operation.js'
import type { HtmlPage } from '../http/page.js'
import { anyObject, formOf, textForm } from '../http/schemas.js'
import { answerSmall, htmlType, jsonType, publicShortly } from '../http/small-answer.js'
import type { Route } from './route.js'

/**
 * `/openapi.json` and `/api-docs`: every path of a service. `table` is called once, when the routes are complete. `prefixes`:
 * below which both are answered.
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
  const page = late(() => apiDocsPage(table(), service))
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
