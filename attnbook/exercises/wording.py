"""Every sentence that the checks say by themselves, in the markup of `attnbook.markup`.

What is said about one exercise alone stands with the exercise, in the module of its chapter.
"""

# ---- the head of a verdict
HEAD = "Exercise {name}: {state}"
OPEN = "not answered yet"
RIGHT = "right"
WRONG = "not yet"
UNREADABLE = "cannot be read"

# ---- how the answer was handed in
ONE_ANSWER = 'This exercise has one answer: write check("{name}", answer).'
SEVERAL = 'This exercise has {n} answers: write check("{name}", {call}).'
NO_SUCH_PART = "There is no answer called {part}."

# ---- reading a number or an array
NUMBER = ONE_NUMBER = "one number"
ARRAY = "an array of shape {shape}"
STILL_OPEN = "One entry is still `...`."
IS_NONE = "Expected {what}, got None. A function that only prints its result returns None."
IS_TEXT = "Expected {what}, got the text {given}. Write numbers without quotation marks."
IS_BOOLEAN = "Expected {what}, got {given}."
IS_MASKED = "Expected {what}, got a masked array, with entries left open. Fill them: `.filled(0)`."
IS_COMPLEX = "Expected a real number, got a complex one."
IS_FUNCTION = "Expected {what}, got a function. Call it and hand in what it returns."
IS_OTHER = "Expected {what}, got an object of type {kind}. Hand in a number, a list or an array."
HAS_SYMBOLS = "{given} still contains {symbol}. Put in the numbers of the exercise."
UNKNOWN_FUNCTION = "{given} is not worked out: it contains {kind}. Hand in a plain number."
NOT_REAL = "{given} is not a real number."
NOT_FINITE = "Expected {what}, got {given}."
NOT_THE_SHAPE = "Expected {what}, got {given}."
TOO_LARGE = "A number in this answer is too large."
TOO_LONG = "This answer is too long: it has more than {limit} entries or terms."
TOO_DEEP = "This answer has lists in lists, more than {limit} deep."
RAGGED = "The rows of this answer differ in length."

# ---- a number, an array or a word that could be read
EXACT = "{given} is right, exactly."
ROUNDED = "{given} is right. Exactly it is {exact}."
DECIMAL = "{given} is right. Exactly it is {exact}, or {decimal} rounded."
NOT_IT = "{given} is not right."
ENTRIES_RIGHT = "{right} of {all} entries are right."
CLOSE = "It is close, but not right to three significant digits. Was something rounded on the way?"
COUNT = "It is close. Give a whole number exactly, or rounded to three or more significant digits."
LIKELY = "Most likely: {message}"
NO_USUAL_MISTAKE = "None of the usual mistakes leads to this. The hints above may help."
CHOOSE = "Expected one of {options} as text, got {given}."

# ---- a function
NOT_A_FUNCTION = (
    "Expected the function {function} itself, got {given}. Hand it in without calling it."
)
PARAMETERS = "{function} is called with {expected}, and yours cannot be: {problem}."
ALL_EXACT = "{function} is right on {n} inputs, with no difference from the exact values."
ALL_RIGHT = (
    "{function} is right on {n} inputs. The largest difference from the exact values is "
    "{difference:.0e}, which is rounding."
)
FIRST_FAILURE = "Input {n} of {inputs} is the first that fails:"
RAISED = "{function} raised {error}"
RAISED_IN_LINE = "{function} raised {error}, in its line {number}: {line}"
RETURNS_NONE = "{function} returned None. Is the return missing?"
PRINTS_ONLY = "{function} printed its result and returned None. Let it return the result."
NOT_NUMBERS = "{function} did not return numbers. {problem}"
RESULT_SHAPE = "Expected a result of shape {letters} = {expected}, got {given}."
RESULT_NUMBER = "Expected one number as the result, got an array of shape {given}."
EMPTY = "The result is empty. Does a loop run over nothing?"
ZEROS = "Every entry is 0. Does a loop run over nothing?"
WHOLE_NUMBERS = "The result is an array of integers, so that fractions were cut off."
HAS_NAN = "{n} of {all} entries are nan or inf."
CHANGED = "{function} changed its argument {argument}. Work on a copy."
PRINTED = "What {function} printed is left out here."
DIFFERENCE = "The largest difference is {difference:.2g}."
RETURNED = "returned"
EXPECTED = "expected"

# ---- a function that returns several gradients
RESULTS = "Expected {function} to return {n} arrays, {names}, in this order; got {given}."
SO_MANY = "{n} in all"
ONE_ARRAY = "one array of shape {shape}"
INTEGERS = "It is an array of integers, so that fractions were cut off."
TABLE_HEAD = ("", "shape", "exact", "approximate", "largest difference")
YES, NO = "yes", "no"
NOT_THIS_SHAPE = "its shape is {given}"
NOT_ARRAY = "not an array of numbers"
NAN_OR_INF = "nan or inf"
FIRST_WRONG = "The first that is wrong, in the order in which they are computed, is {name}."
ALL_GRADIENTS = "{function} is right on {n} inputs. Over all of them:"

# ---- progress over the whole book
CHAPTER = "Chapter {chapter:02d}"
WHOLE_BOOK = "In all"
SOLVED = "{title}: {right} of {all} right"
TRIED = ", {wrong} not yet"
PROOFS = "Counted are the exercises with a check; proofs you mark yourself."
NOT_KEPT = "Nothing is kept here: open the book with `python -m attnbook` and work in my_book/."
FOREIGN = (
    "progress.json is not one that the book wrote, or is damaged. The next check gives it another "
    "name and begins a new one."
)
NEWER = (
    "progress.json was written by a newer version of the book. Update the book to go on with it."
)
READ_ONLY = "my_book/ or progress.json cannot be written in: what you solve now is not kept."
UNREAD = "progress.json cannot be read now, and stays as it is: what you solve now is not kept."
