import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Reply, Request } from '../http/exchange.js'
import { iconAddress, iconSvg } from '../http/page.js'
import { palette } from '../http/palette.js'
import { answerSmall, textType } from '../http/small-answer.js'
import { sha256 } from '../proof/digest.js'
import type { Route } from '../serving/route.js'

/** The files of the page in the source folder; they are not compiled. */
const folder = new URL('../../../src/routes/console/', import.meta.url)

/**
 * Nothing from outside, nothing inline, no frames. The page has a browsing context group of its own, so that a window that
 * opened it cannot access it.
 */
const lines = [
  "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy: same-origin',
  'Cross-Origin-Resource-Policy: same-origin',
  'Referrer-Policy: no-referrer',
  'X-Content-Type-Options: nosniff',
  'X-Frame-Options: DENY',
  'Cache-Control: no-cache',
]

const types = { html: 'text/html', css: 'text/css', js: 'text/javascript' } as const
/** The library of the charts, as its package has it. */
const library = createRequire(import.meta.url)
const own = (file: string): URL => new URL(file, folder)

const files = [
  { path: '', file: own('page.html'), type: types.html },
  { path: '/page.css', file: own('page.css'), type: types.css },
  { path: '/uplot.css', file: library.resolve('uplot/dist/uPlot.min.css'), type: types.css },
  { path: '/uplot.js', file: library.resolve('uplot/dist/uPlot.iife.min.js'), type: types.js },
  ...[
    'page',
    'session',
    'moderation',
    'lookup',
    'metrics',
    'view',
    'live',
    'charts',
    'load',
    'report',
    'history',
    'log',
    'service-watch',
    'uploads',
    'credits',
    'machines',
  ].map((name) => {
    return { path: `/${name}.js`, file: own(`${name}.js`), type: types.js }
  }),
]

/** Puts values where a file has their names in double braces. */
function filled(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce((each, [name, value]) => each.replaceAll(`{{${name}}}`, value), text)
}

/**
 * `{prefix}/console` (and the way to it from `/`): the operator's page. It holds no secret: it requests what it shows from
 * the admin routes.
 */
export function consoleRoutes(pathPrefix: string): Route[] {
  const page = `${pathPrefix}/console`
  const slashed: Route = {
    family: 'info',
    path: `${page}/`,
    methods: ['GET', 'HEAD'],
    about: [{ path: `${page}/`, summary: 'Leads to the console', statuses: [308, 404] }],
    handle(request, reply, first) {
      const found = request.path.length === page.length + 1
      const lines = found ? `\r\nLocation: ${page}` : ''
      const [status, body] = found ? [308, `The console is at ${page}`] : [404, 'Not found']
      answerSmall(request, reply, first, { status, type: textType, lines, body })
    },
  }
  const top: Route = {
    family: 'info',
    path: '/',
    methods: ['GET', 'HEAD'],
    about: [{ path: '/', summary: 'Leads to the console', statuses: [308] }],
    handle(request, reply, first) {
      const body = `The console is at ${page}`
      answerSmall(request, reply, first, {
        status: 308,
        type: textType,
        lines: `\r\nLocation: ${page}`,
        body,
      })
    },
  }
  const routes = files.map(({ path, file, type }): Route => {
    const lead = path === '/page.css' ? palette : ''
    const given = { prefix: pathPrefix, icon: iconSvg, iconAddress }
    const text = lead + filled(readFileSync(file, 'utf8'), given)
    const tag = `"${Buffer.from(sha256(Buffer.from(text))).toString('base64url')}"`
    const head = ['', ...lines, `ETag: ${tag}`].join('\r\n')
    return {
      family: 'info',
      path: page + path,
      methods: ['GET', 'HEAD'],
      about: [{ path: page + path, summary: `The operator's page${path}`, statuses: [200, 304], type }],
      handle(request: Request, reply: Reply, first: string): void {
        const unchanged = request.header('if-none-match') === tag
        const [status, body] = unchanged ? [304, ''] : [200, text]
        answerSmall(request, reply, first, { status, type: `${type}; charset=utf-8`, lines: head, body })
      },
    }
  })
  return [...routes, slashed, top]
}
