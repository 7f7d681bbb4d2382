import { readdirSync, readFileSync } from 'node:fs'
import { type HtmlPage, inHtml, makePage, sizeInWords } from '../../http/page.js'
import { sha256 } from '../../proof/digest.js'
import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'

export interface UploadPageFacts {
  /** Host or URL of the gateway that serves what was taken. */
  readonly gateway: string
  readonly itemMaxBytes: number
  readonly freeItemBytes: number
  readonly freeWalletBytes: number
  /** Where browsers reach the payment service, from which the page gets prices in dollars. */
  readonly paymentUrl: string | undefined
}

/** Scripts of the page with the client's library in them, as `bin/build.mjs` puts them together. */
const scripts = new URL('../../../pages/upload/', import.meta.url)
const sheet = new URL('../../../../src/upload/page/page.css', import.meta.url)

/** What people see who open `/upload`. */
export function uploadPage(facts: UploadPageFacts): HtmlPage {
  const { gateway, itemMaxBytes, freeItemBytes, freeWalletBytes, paymentUrl } = facts
  const paying = paymentUrl === undefined ? '' : ` data-payment="${inHtml(paymentUrl)}"`
  const ofAll = `${sizeInWords(freeWalletBytes)} for each key`
  const free = freeItemBytes === 0 ? '' : ` Files up to ${sizeInWords(freeItemBytes)} are free, ${ofAll}.`
  const body = `<section id="drop" class="drop"${paying}><p><strong>Drop files or a folder here</strong></p>
<p class="row"><label class="button">Choose files<input type="file" id="files" multiple></label>
<label class="button">Choose a folder<input type="file" id="folder" webkitdirectory></label></p>
<p class="quiet">What you upload is public, and nobody can take it back: it stays. Up to
${sizeInWords(itemMaxBytes)} each.${free}</p></section>
<noscript><section>This page needs scripts of its own.</section></noscript>
<section id="chosen" hidden><h2 id="what"></h2><ul id="names"></ul>
<div id="left" hidden><p>Left out:</p><ul id="leftnames"></ul></div>
<p id="hiddenrow" hidden><label><input type="checkbox" id="hidden"> <span>Upload hidden files, too. They can hold passwords,
and everybody can read them for ever.</span></label></p>
<p id="cost" class="quiet" role="status"></p>
<p class="row"><button type="button" class="main" id="go">Upload</button>
<button type="button" id="clear">Choose others</button></p></section>
<p id="said" role="alert"></p>
<section id="uploads" hidden><h2>Uploads</h2><ul id="list" class="list"></ul></section>
<section><h2>Key</h2><div id="key"></div></section>
<p class="quiet">Served at once by ${inHtml(gateway)}. <a href="/">About this service</a></p>`
  const style = readFileSync(sheet, 'utf8')
  return makePage('Upload permanently', body, {
    module: '/page/page.js',
    style,
    ...(paymentUrl === undefined ? {} : { connectsTo: new URL(paymentUrl).origin }),
  })
}

/** Answers about the page's scripts by name. Names of those that change with their content may be kept for long. */
export function pageScripts(): (name: string, known: string | undefined) => UploadAnswer {
  const files = new Map(
    readdirSync(scripts)
      .filter((name) => name.endsWith('.js'))
      .map((name) => {
        const text = readFileSync(new URL(name, scripts), 'utf8')
        return [name, { text, tag: `"${Buffer.from(sha256(Buffer.from(text))).toString('base64url')}"` }]
      }),
  )
  return (name, known) => {
    const file = files.get(name)
    if (file === undefined) return textAnswer(404, 'Not Found')
    const caching = name === 'page.js' ? 'no-cache' : 'public, max-age=31536000, immutable'
    const lines = `\r\nCache-Control: ${caching}\r\nETag: ${file.tag}\r\nX-Content-Type-Options: nosniff`
    if (known === file.tag) return { status: 304, text: '', lines }
    return { status: 200, text: file.text, type: 'text/javascript; charset=utf-8', lines }
  }
}
