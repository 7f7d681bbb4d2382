/** Control characters, those that turn the direction of a line, and separators of lines (Unicode categories and UAX 9). */
const steering = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/**
 * A text of others on one line: what steers a terminal or a line is written as in JSON. Names of files and words of services
 * could otherwise start lines that look like ours, or show what is not there.
 */
export function oneLine(text: string): string {
  return text.replace(steering, (char) => {
    const short = JSON.stringify(char).slice(1, -1)
    return short === char ? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}` : short
  })
}
