import { answerSmall, jsonType } from '../gateway/answer.js'
import type { Route } from '../gateway/parts.js'
import { type Described, openApiOf } from '../http/openapi.js'
import type { Operations } from '../http/operation.js'
import { gatewayParameters } from './parameters.js'

/** The page runs nothing and loads nothing. */
const lines = [
  '',
  "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  'X-Content-Type-Options: nosniff',
  'Cache-Control: public, max-age=30',
].join('\r\n')

const style =
  'body{font:16px/1.5 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem}' +
  'td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}code{white-space:nowrap}'

const gatewayService = {
  title: 'Sluice',
  description: 'A gateway for permanent storage.',
  parameters: gatewayParameters,
  securitySchemes: { adminKey: { type: 'http', scheme: 'bearer' } },
}

/** `/openapi.json` and `/api-docs`: every path of this gateway. `table` is asked once, when the routes are complete. */
export function docsRoutes(table: () => readonly Described[], release: string): Route[] {
  const late = (make: () => string): (() => string) => {
    let text: string | undefined
    return () => {
      text ??= make()
      return text
    }
  }
  const json = late(() => `${JSON.stringify(openApiOf(table(), { ...gatewayService, release }))}\n`)
  const page = late(() => pageOf(table(), release))
  const route = (path: string, type: string, text: () => string, about: Operations): Route => ({
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about,
    handle(request, reply, first) {
      answerSmall(request, reply, first, { status: 200, type, lines, body: text() })
    },
  })
  const html = 'text/html; charset=utf-8'
  return [
    route('/openapi.json', jsonType, json, [
      { path: '/openapi.json', summary: 'This description', statuses: [200] },
    ]),
    route('/api-docs', html, page, [
      { path: '/api-docs', summary: 'This description as a page', statuses: [200], type: 'text/html' },
    ]),
  ]
}

function pageOf(table: readonly Described[], release: string): string {
  const rows = [...table]
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .map(({ path, methods, summary, query, operator }) => {
      const asked = query === undefined ? '' : `?${query.join('&')}`
      const key = operator ? ' (admin key)' : ''
      const cells = [methods.join(' '), `<code>${inHtml(path + asked)}</code>`, inHtml(summary + key)]
      return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
    })
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Paths of this gateway</title><style>${style}</style></head>
<body><h1>Paths of this gateway</h1>
<p>Release ${inHtml(release)}. For programs: <a href="/openapi.json">openapi.json</a>.</p>
<table><tr><th>Methods</th><th>Path</th><th>What it is</th></tr>
${rows.join('\n')}
</table></body></html>
`
}

function inHtml(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`)
}
